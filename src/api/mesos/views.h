#pragma once

// What operators read of the master and of its agent, in the JSON of Mesos. On the control strand.

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "api/mesos/seen_frameworks.h"
#include "api/router.h"
#include "control/offers.h"

namespace drover::api::mesos {

/// {"cpus": 0.5, "disk": 0, "gpus": 1, "mem": 64, "ports": "[31000-31001]"}; memory and disk in MiB.
nlohmann::json view(const control::Amounts& amounts);
control::Amounts total_of(const engine::NodeView& node);

nlohmann::json view_task(const Services& services, const SeenFramework& framework,
                         const control::TaskRecord& record);
nlohmann::json view_slave(const Services& services);
control::Amounts all_offered(const Master& master);
/// Of everything that holds resources, as /containers lists it.
nlohmann::json view_containers(const Services& services, const engine::Caller& caller);
nlohmann::json view_version();
/// By name; values are text.
nlohmann::json view_flags(const Master& master);
/// By name; values are numbers.
nlohmann::json view_metrics(const Services& services);

/// Those that it has declared.
std::vector<std::string> roles_of(const control::FrameworkRecord& record);
/// What it said that it is: its FrameworkInfo, as far as that is kept.
nlohmann::json info_of(const control::FrameworkRecord& record);
/// All but its tasks.
nlohmann::json view_framework(const SeenFramework& framework);
/// Whole, with the tasks.
nlohmann::json view_frameworks(const Services& services, const engine::Caller& caller, bool removed);

struct SeenRole {
  std::vector<std::string> frameworks;  ///< their ids
  control::Amounts allocated;
  control::Amounts offered;
};
/// By name.
std::map<std::string, SeenRole> roles_for(const Services& services, const engine::Caller& caller);

/// Adds "executors" and "completed_executors", each with its sandbox. Their tasks are whole, or only named.
void add_executors(const Services& services, const SeenFramework& framework, bool with_tasks,
                   nlohmann::json& view);

/// On one line, as Mesos answers.
Response compact(const nlohmann::json& value);

}  // namespace drover::api::mesos
