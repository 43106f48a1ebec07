#pragma once

// What events tell of, by the words that people filter them by.

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "base/result.h"

namespace drover::workload {

inline constexpr std::array<std::string_view, 18> kEventKinds = {
    "task_queued",   "task_preparing", "task_starting", "task_running",      "task_stopping",
    "task_idle",     "task_lingering", "task_finished", "task_failed",       "task_killed",
    "task_lost",     "task_forgotten", "share_overrun", "neighbour_overrun", "share_resized",
    "mps_restarted", "gpu_fit",        "gpu_unfit"};

inline Status check_event_kind(const std::string& word) {
  if (std::ranges::find(kEventKinds, word) != kEventKinds.end()) return {};
  std::string all;
  for (const auto kind : kEventKinds) all += (all.empty() ? "" : ", ") + std::string(kind);
  return fail(ErrorKind::kInvalid, "There are no events of the kind '" + word + "'", "there are " + all);
}

}  // namespace drover::workload
