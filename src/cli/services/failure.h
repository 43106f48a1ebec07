#pragma once

// How an instance of an app failed last: which, how, when, and what it wrote last.

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "cli/client.h"

namespace drover::cli {

struct AppFailure {
  std::string app;
  std::string task;     ///< as `drover logs` takes it
  std::string how;      ///< "exited with status 2"
  std::string version;  ///< that the instance was started with
  std::optional<TimePoint> at;
  std::vector<std::string> output;  ///< the last lines that it wrote, where they are known
};

/// The last failure of an app that the API shows; none when none of its instances has failed. Pure.
std::optional<AppFailure> last_failure(const nlohmann::json& app);

/// Reads the last lines of its standard error; of its standard output when there are none. What cannot be
/// read stays empty.
void add_output(const Client& client, AppFailure& failure);

/// Whether the one failed as the other did. Ids, ports and times in what they wrote may differ. Pure.
bool is_alike(const AppFailure& a, const AppFailure& b);

/// "/web: web.instance-6fcb… failed 3s ago: exited with status 2", and the lines of output below it,
/// indented. No line is wider than `columns`, unless that is 0. Pure.
std::string failure_text(const AppFailure& failure, TimePoint now, std::size_t columns);

}  // namespace drover::cli
