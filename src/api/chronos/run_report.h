#pragma once

// What a webhook is told of a run of a schedule. Pure.

#include <optional>

#include "control/notice.h"
#include "control/state.h"
#include "engine/webhooks/webhooks.h"

namespace drover::api::chronos {

/// None when nobody is to be told: the schedule names no URL, or the run is tried again.
std::optional<engine::WebhookMessage> report_of(const control::notice::ScheduleRunEnded& ended,
                                                const control::State& state);

}  // namespace drover::api::chronos
