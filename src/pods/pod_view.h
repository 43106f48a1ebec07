#pragma once

// What a pod's object says of the attempt that it stands for. Pure.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "kube/scheduler/preemption_words.h"
#include "pods/attempt.h"
#include "workload/ending.h"

namespace drover::pods {

// By which a pod of ours is known. The journal's id tells apart what several control planes have made.
inline constexpr const char* kTaskLabel = "drover.dev/task";
inline constexpr const char* kAttemptLabel = "drover.dev/attempt";
inline constexpr const char* kJournalLabel = "drover.dev/journal";
inline constexpr const char* kFinalizer = "drover.dev/end-not-recorded";
/// The container that is the task; others bring its files.
inline constexpr const char* kContainer = "task";

struct PodView {
  std::string name_space, name, uid;
  std::string task;  ///< "" of one that is none of ours
  int attempt = 0;
  std::string journal;
  Actual actual = Actual::kAbsent;
  std::uint64_t version = 0;  ///< later ones are higher; 0: it does not say
  bool leaving = false;       ///< somebody has deleted it
  /// Leaving, and it may run yet: when its time is over, where that was made shorter than the pod has it. Its
  /// kubelet does not hear of it when it has begun to stop the pod before.
  std::optional<TimePoint> due_at;
  bool held = false;                    ///< by our finalizer
  std::string node;                     ///< "" as long as it has none
  std::string address;                  ///< its own, or the node's where it has the node's network
  std::vector<std::string> gpus;        ///< UUIDs, as far as the scheduler has told
  std::string claim;                    ///< of GPUs, that we make for it (gpu_claim.h); "": none
  std::optional<TimePoint> started_at;  ///< its container
  bool takes_input = false, has_terminal = false;
  /// Of kEnded and kEndedEvicted; stopped: somebody has deleted the pod. Of kLost, `lost` is set and the
  /// message says what is known.
  workload::Ending ending;
  /// Why it waits for a node, was refused by one, or makes room; in words, may be empty.
  std::string why;
  /// For whom it makes room, where that is how Drover's scheduler says it.
  std::optional<kube::scheduler::Preemption> preemption;
};

/// What is told of its end. `view`: null when its pod is gone. `asked`: somebody wanted it to be stopped.
workload::Ending ending_of(const PodView* view, bool lost, bool asked);

/// What is missing, or of another kind than Kubernetes has it, is taken for not being said.
PodView read_pod(const nlohmann::json& pod);

}  // namespace drover::pods
