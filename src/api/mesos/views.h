#pragma once

// What operators read of the master and of its agent, in the JSON of Mesos. On the control strand.

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "api/mesos/master.h"
#include "api/router.h"
#include "control/offers.h"

namespace drover::api::mesos {

/// {"cpus": 0.5, "disk": 0, "gpus": 1, "mem": 64, "ports": "[31000-31001]"}; memory and disk in MiB.
nlohmann::json view(const control::Amounts& amounts);
control::Amounts total_of(const engine::NodeView& node);

/// Others than root see their own frameworks.
bool may_see(const engine::Caller& caller, const control::FrameworkRecord& record);

/// The executor that a task belongs to: its own id, unless it is one of a group.
std::string executor_of(const control::State& state, const control::TaskRecord& record);
/// What /files takes for the sandbox of a task.
std::string sandbox_path(const Master& master, const control::TaskRecord& record,
                         const std::string& executor);

nlohmann::json view_task(const Master& master, const control::State& state, const control::TaskRecord& record,
                         const control::FrameworkRecord& framework);
nlohmann::json view_slave(const Services& services);
/// Those that the caller may see: living ones, or removed ones.
nlohmann::json view_frameworks(const Services& services, const engine::Caller& caller, bool removed);

/// On one line, as Mesos answers.
Response compact(const nlohmann::json& value);

}  // namespace drover::api::mesos
