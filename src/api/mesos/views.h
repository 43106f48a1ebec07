#pragma once

// What operators read of the master and of its agent, in the JSON of Mesos. On the control strand.

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

/// Those that it has declared.
std::vector<std::string> roles_of(const control::FrameworkRecord& record);
/// All but its tasks.
nlohmann::json view_framework(const SeenFramework& framework);
/// Whole, with the tasks.
nlohmann::json view_frameworks(const Services& services, const engine::Caller& caller, bool removed);

/// Adds "executors" and "completed_executors", each with its sandbox. Their tasks are whole, or only named.
void add_executors(const Services& services, const SeenFramework& framework, bool with_tasks,
                   nlohmann::json& view);

/// On one line, as Mesos answers.
Response compact(const nlohmann::json& value);

}  // namespace drover::api::mesos
