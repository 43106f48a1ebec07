#pragma once

// Services: what people want of them, the deployments that bring it about, and the instances that follow.
// Pure.
//
// A deployment goes through its steps (deployments.h); what each says is `applied`, and instances.h keeps as
// many instances running as that wants, whatever becomes of them.

#include <optional>
#include <string>
#include <vector>

#include "control/draft.h"
#include "control/event.h"

namespace drover::control {

Status change_services(Draft& draft, const event::ServicesChanged& event);
Status kill_instances(Draft& draft, const event::InstancesKilled& event);
Status cancel_deployment(Draft& draft, const event::DeploymentCancelled& event);
Status reset_delay(Draft& draft, const std::string& service);

/// Brings services and deployments on, after everything else that an event did: those that it touched, or
/// all of them.
void advance_services(Draft& draft, bool all);

/// When a service may try again that waits after failures.
std::optional<TimePoint> next_attempt(const State& state);

}  // namespace drover::control
