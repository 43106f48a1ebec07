#pragma once

// Lists of tasks for people: which of them, in which order, with what said of each. Pure.

#include <chrono>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "cli/table.h"
#include "cli/words.h"

namespace drover::cli {

/// "train", and with its rank in a gang, or its number in an array: "train[2]".
std::string name_of_task(const nlohmann::json& task);
/// "research/vision", with the priority when it is not the usual one: "default +5".
std::string queue_of_task(const nlohmann::json& task);
/// Whether a task in this state has ended.
bool is_final_state(const std::string& state);
Colour colour_of_state(const std::string& state);
/// From its start to its end, or to `now`; "-" before its start.
std::string run_time(const nlohmann::json& record, TimePoint now);

/// How long this machine keeps tasks that have ended, by /v1/nodes; 0 when it does not say.
std::chrono::milliseconds time_of_keeping(const nlohmann::json& nodes);
/// When a task that has ended is forgotten, with its sandbox.
std::optional<TimePoint> kept_until(const nlohmann::json& record, std::chrono::milliseconds kept);

/// That some of them are forgotten before long; "" when none is.
std::string note_of_removals(const std::vector<nlohmann::json>& records, std::chrono::milliseconds kept,
                             TimePoint now);

/// What is asked for; what is empty does not matter.
struct TaskFilter {
  std::vector<std::string> states;
  std::vector<std::string> users;
  std::vector<std::string> queues;  ///< or queues below them
  std::vector<std::string> labels;  ///< NAME or NAME=VALUE; all of them
  std::string name;                 ///< with * for any text
  std::optional<TimePoint> since;   ///< accepted then or later

  bool takes(const nlohmann::json& record) const;
};

/// The columns that there are, and those of an ordinary list.
std::vector<std::string> task_columns();
/// That there are these columns: task_columns(), and some more.
Status check_columns(const std::vector<std::string>& names);

class TaskRows {
 public:
  TaskRows(std::vector<std::string> columns, const KnownGpus& gpus, TimePoint now);

  /// A record of the API, as a row of text.
  std::vector<Cell> row(const nlohmann::json& record) const;
  std::vector<std::string> header(bool simulated) const;

 private:
  std::vector<std::string> columns_;
  const KnownGpus& gpus_;
  TimePoint now_;
};

/// What waits of an array as one record, in the place of its first: of the ids and numbers "0f3a-[3-99]".
std::vector<nlohmann::json> with_waiting_arrays_joined(const std::vector<nlohmann::json>& records);

/// By the values of a column; with '-' before it the largest first. The order of what is equal stays.
Status sort_records(std::vector<nlohmann::json>& records, const std::string& by);

}  // namespace drover::cli
