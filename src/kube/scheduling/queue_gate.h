#pragma once

// Lets a pod that another scheduler binds go on: its turn has come in the queues.

#include <chrono>
#include <functional>
#include <stop_token>
#include <string>

#include "base/units.h"
#include "kube/client/api.h"
#include "kube/scheduler/scheduler.h"

namespace drover::kube {

/// Takes the scheduling gate of queues off the pod, and notes on it when that was and where room is kept for
/// it. As often as is needed until the server has answered, `may_write` says no, or it is stopped. kConflict
/// when it is another pod.
Status open_queue_gate(Api& api, const scheduler::PodName& pod, const std::string& expected_node,
                       TimePoint now, const std::function<bool()>& may_write, const std::stop_token& stop);

}  // namespace drover::kube
