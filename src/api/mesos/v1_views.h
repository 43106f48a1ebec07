#pragma once

// What operators are told by the v1 API: the views of views.h in the shape of its messages, whose fields
// beyond those that a message has are ignored. On the control strand.

#include <nlohmann/json_fwd.hpp>

#include "api/mesos/seen_frameworks.h"
#include "api/router.h"

namespace drover::api::mesos {

nlohmann::json v1_task(const Services& services, const SeenFramework& framework,
                       const control::TaskRecord& record);
/// All but its tasks.
nlohmann::json v1_framework(const SeenFramework& framework);

/// One answer of a master or of an agent.
using V1View = nlohmann::json (*)(const Services& services, const engine::Caller& caller);

// Of both
nlohmann::json v1_health(const Services& services, const engine::Caller& caller);
nlohmann::json v1_flags(const Services& services, const engine::Caller& caller);
nlohmann::json v1_version(const Services& services, const engine::Caller& caller);
nlohmann::json v1_metrics(const Services& services, const engine::Caller& caller);
nlohmann::json v1_logging_level(const Services& services, const engine::Caller& caller);
nlohmann::json v1_frameworks(const Services& services, const engine::Caller& caller);
nlohmann::json v1_executors(const Services& services, const engine::Caller& caller);
/// There are none: operations, weights, resource providers.
nlohmann::json v1_nothing(const Services& services, const engine::Caller& caller);

// Of the master
nlohmann::json v1_state(const Services& services, const engine::Caller& caller);
nlohmann::json v1_tasks(const Services& services, const engine::Caller& caller);
nlohmann::json v1_agents(const Services& services, const engine::Caller& caller);
nlohmann::json v1_roles(const Services& services, const engine::Caller& caller);
nlohmann::json v1_master(const Services& services, const engine::Caller& caller);
/// Of quotas and of maintenance, of which there is none.
nlohmann::json v1_no_status(const Services& services, const engine::Caller& caller);
nlohmann::json v1_no_schedule(const Services& services, const engine::Caller& caller);

// Of the agent
nlohmann::json v1_agent_state(const Services& services, const engine::Caller& caller);
nlohmann::json v1_agent_tasks(const Services& services, const engine::Caller& caller);
nlohmann::json v1_agent(const Services& services, const engine::Caller& caller);
nlohmann::json v1_containers(const Services& services, const engine::Caller& caller);

}  // namespace drover::api::mesos
