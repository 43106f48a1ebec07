#pragma once

// What operators read of the master and of its agent, in the JSON of Mesos. On the control strand.

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

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

/// Its id and its record, in the state.
using FrameworkRow = std::pair<const std::string, control::FrameworkRecord>;
/// Those that the caller may see, by id: living ones, or removed ones.
std::vector<const FrameworkRow*> frameworks_for(const Services& services, const engine::Caller& caller,
                                                bool removed);
/// Those that it has declared.
std::vector<std::string> roles_of(const control::FrameworkRecord& record);
/// What frameworks hold and are offered, by id.
struct FrameworkAmounts {
  std::map<std::string, control::Amounts> used, offered;
};
FrameworkAmounts amounts_of_frameworks(const Services& services);
/// All but its tasks.
nlohmann::json view_framework(const Services& services, const FrameworkRow& row,
                              const FrameworkAmounts& amounts);
/// Whole, with the tasks.
nlohmann::json view_frameworks(const Services& services, const engine::Caller& caller, bool removed);

/// On one line, as Mesos answers.
Response compact(const nlohmann::json& value);

}  // namespace drover::api::mesos
