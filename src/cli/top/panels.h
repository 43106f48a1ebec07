#pragma once

// What `drover top` shows, as rows: of what the daemon says, of GPUs, processes and tasks. Pure.

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "cli/table.h"

namespace drover::cli::top {

/// What one look has found, in the words of the API.
struct Snapshot {
  nlohmann::json gpus = nlohmann::json::object();   ///< of /v1/gpus?usage=true
  nlohmann::json tasks = nlohmann::json::array();   ///< records of tasks that wait or run
  nlohmann::json queues = nlohmann::json::array();  ///< of /v1/queues
  bool of_daemon = true;                            ///< else of this machine's driver alone
  std::map<std::uint32_t, std::string> users = {};  ///< names of this machine, by uid
  TimePoint at{};
};

/// How busy each GPU was, look by look, the oldest first.
class Histories {
 public:
  static constexpr std::size_t kLongest = 240;

  /// Those that are not listed any more are forgotten.
  void add(const nlohmann::json& gpus);
  /// Percents; -1 where nobody could say.
  const std::vector<int>& of(const std::string& uuid) const;

 private:
  std::map<std::string, std::vector<int>> by_uuid_;
};

struct Column {
  const char* title;
  int room;              ///< in cells
  bool right = false;    ///< where its text stands
  int from_width = 0;    ///< it is shown on terminals that are at least so wide
  bool spreads = false;  ///< it has what room is left
};

struct Field {
  std::string text = {};
  Colour colour = Colour::kNone;
  std::optional<double> order = {};    ///< to sort by, instead of the text
  std::optional<double> percent = {};  ///< a bar before the text
  std::vector<int> graph = {};         ///< instead of text
};

struct Row {
  std::string key;        ///< the same from look to look
  std::string task;       ///< id of the task that it belongs to; "" for none
  std::string task_name;  ///< for people
  std::string user;
  std::vector<std::string> gpus;  ///< indices
  std::vector<Field> fields;      ///< one a column
};

struct Panel {
  std::string title;  ///< "Tasks: 3 run, 5 wait"
  std::vector<Column> columns;
  std::vector<Row> rows;
};

inline constexpr std::size_t kPanels = 3;
/// GPUs, processes, tasks.
using Panels = std::array<Panel, kPanels>;

Panels panels_of(const Snapshot& snapshot, const Histories& histories);

/// What the first line says of the machine: its name, driver, whether its GPUs are simulated, what is wrong.
std::string machine_words(const Snapshot& snapshot);

}  // namespace drover::cli::top
