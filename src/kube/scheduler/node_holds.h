#pragma once

// Nodes that pods of other schedulers are bound to as well. When something becomes free on a full one, both
// take it in the same moment, and the kubelet rejects who comes second. So such a node is held first: a taint
// keeps other schedulers off it while ours wait, and what becomes free there is ours alone. Where so much is
// free that both have room, nothing is held.
//
// The taint is all that has to be remembered, and the API server has it. Pure; one thread at a time.

#include <chrono>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/units.h"
#include "kube/scheduler/node.h"

namespace drover::kube::scheduler {

/// Key of the taint; its value is the scheduler's name.
inline constexpr const char* kHeldTaint = "drover.dev/held";

class NodeHolds {
 public:
  void note_node(const std::string& name, bool held, TimePoint now);
  void remove_node(const std::string& name) { nodes_.erase(name); }
  /// A pod of another scheduler has come to the node.
  void note_stranger(const std::string& node, const Resources& requests, TimePoint now);
  /// Whether room may be taken there that leaves `left`. Where not, and it `matters`, the node is to be held.
  bool may_use(const std::string& node, const Resources& left, bool matters, TimePoint now);

  struct Changes {
    std::vector<std::string> hold, release;
    std::optional<TimePoint> again;  ///< then others may be due
  };
  /// `someone_waits`: for room that a node that is held may come to have.
  Changes changes(bool someone_waits, TimePoint now);

 private:
  struct State {
    Resources largest = {};      ///< of strangers that came lately
    TimePoint stranger = {};     ///< when the last of them came
    bool held = false;           ///< as the API server says
    TimePoint since = {};        ///< from when on
    TimePoint used = {};         ///< when somebody last wanted room there
    TimePoint asked = {};        ///< when it was last to be held, or not to be held any more
    TimePoint rests_until = {};  ///< it was held for long
    bool wished = false;
  };

  std::unordered_map<std::string, State> nodes_;
};

}  // namespace drover::kube::scheduler
