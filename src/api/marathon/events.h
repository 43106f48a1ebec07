#pragma once

// What decisions tell, as the events that Marathon's clients know. Pure.

#include <vector>

#include "api/marathon/event_hub.h"
#include "control/notice.h"
#include "control/state.h"

namespace drover::api::marathon_v2 {

/// In the order in which they go out; none where Marathon tells nothing. `state` is that after the decision,
/// `ip` the machine's.
std::vector<WireEvent> events_of(const control::Notice& notice, const control::State& state,
                                 const std::string& ip, TimePoint now);

WireEvent attached_event(bool attached, TimePoint now);
/// A change of an app or a group was refused.
WireEvent failed_event(uid_t caller, const std::string& id, const std::string& why, TimePoint now);
/// An app was defined through the API.
WireEvent post_event(uid_t caller, const workload::Service& service, TimePoint now);

}  // namespace drover::api::marathon_v2
