#include "kube/scheduling/queue_gate.h"

#include <nlohmann/json.hpp>

#include "base/pause.h"
#include "kube/scheduler/queue_gate.h"

namespace drover::kube {

Status open_queue_gate(Api& api, const scheduler::PodName& pod, const std::string& expected_node,
                       TimePoint now, const std::function<bool()>& may_write, const std::stop_token& stop) {
  constexpr std::chrono::milliseconds kFirstTry{100};
  constexpr std::chrono::milliseconds kLongestTry{5000};
  const nlohmann::json patch = {
      {"metadata",
       {{"uid", pod.uid},
        {"annotations",
         {{scheduler::kReleasedAnnotation, format_time(std::chrono::floor<std::chrono::seconds>(now))},
          {scheduler::kExpectedNodeAnnotation, expected_node}}}}},
      {"spec", {{"schedulingGates", {{{"name", scheduler::kQueueGate}, {"$patch", "delete"}}}}}}};
  Backoff backoff(kFirstTry, kLongestTry);
  for (;;) {
    const auto done = api.write({kPods, pod.name_space, pod.name}, PatchType::kStrategic, patch);
    if (done) return {};
    const auto kind = done.error().kind;
    const bool unknown = kind == ErrorKind::kTimeout || kind == ErrorKind::kUnavailable;
    if (!unknown || !may_write() || !pause(backoff.next(), stop)) return Failure(done.error());
  }
}

}  // namespace drover::kube
