#pragma once

// What operators read of the master and of its agent, in the JSON of Mesos. Lists of tasks are written as
// text at once; of what there are few, there are trees. Pure.

#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "api/mesos/seen_frameworks.h"
#include "base/json_writer.h"
#include "control/offers.h"

namespace drover::api::mesos {

/// {"cpus": 0.5, "disk": 0, "gpus": 1, "mem": 64, "ports": "[31000-31001]"}; memory and disk in MiB.
void write(JsonWriter& writer, const control::ResourceAmounts& amounts);
nlohmann::json view(const control::ResourceAmounts& amounts);
void write_task(JsonWriter& writer, const Snapshot& snapshot, const SeenFramework& framework,
                const control::TaskRecord& record);
/// An agent, and what is taken and offered of it.
struct SeenAgent {
  Agent agent;
  control::ResourceAmounts used;
  control::ResourceAmounts offered;
};
std::vector<SeenAgent> agents_in(const Snapshot& snapshot);
/// All of them as if they were one: what the API of an agent tells of.
SeenAgent whole_of(const Snapshot& snapshot);
nlohmann::json view_slave(const Snapshot& snapshot, const SeenAgent& seen);
/// Calls visit(container) for everything that holds resources, as /containers lists it.
void each_container(const Snapshot& snapshot, const std::function<void(nlohmann::json)>& visit);
nlohmann::json view_version();
/// By name; values are text.
nlohmann::json view_flags(const MasterOptions& options);
/// By name; values are numbers.
nlohmann::json view_metrics(const Snapshot& snapshot);

/// Those that it has declared.
std::vector<std::string> roles_of(const control::FrameworkRecord& record);
/// What it said that it is: its FrameworkInfo, as far as that is kept.
nlohmann::json info_of(const control::FrameworkRecord& record);
/// All but its tasks.
nlohmann::json view_framework(const SeenFramework& framework);
/// A list of them whole, with the tasks.
void write_frameworks(JsonWriter& writer, const Snapshot& snapshot,
                      const std::vector<SeenFramework>& frameworks);
/// Bytes that such a list hardly ever has more of.
std::size_t room_for(const std::vector<SeenFramework>& frameworks);

struct SeenRole {
  std::vector<std::string> frameworks;  ///< their ids
  control::ResourceAmounts allocated;
  control::ResourceAmounts offered;
};
/// By name.
std::map<std::string, SeenRole> roles_for(const Snapshot& snapshot);

/// Adds "executors" and "completed_executors", each with its sandbox. Their tasks are whole, or only named.
void write_executors(JsonWriter& writer, const Snapshot& snapshot, const SeenFramework& framework,
                     bool with_tasks);

/// On one line, as Mesos answers.
Response compact(const nlohmann::json& value);

}  // namespace drover::api::mesos
