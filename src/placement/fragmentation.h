#pragma once

// NodePolicy::kFragmentation: the place is taken where free room loses the least of its worth to typical
// requests (outlook.h), of equals where the least is free. Until a mix is known, it is NodePolicy::kPack.
// Deterministic; a value.

#include <optional>
#include <vector>

#include "placement/outlook.h"
#include "placement/score.h"
#include "placement/typical.h"

namespace drover::placement {

class Fragmentation {
 public:
  /// The mix from now on; nothing is learnt any more.
  void set_mix(std::vector<TypicalRequest> mix);
  /// Learns from it, unless the mix was given; what is free has changed.
  void note_placed(const Request& request);
  /// Nodes came, went or became of another kind.
  void note_nodes() { due_ = true; }

  /// Whether update() has to be called before the next score().
  bool due() const { return due_; }
  void update(const std::vector<const NodeState*>& nodes);

  /// What the node is worth as it is; none while no mix is known.
  std::optional<double> worth(const NodeState& before) const;
  /// When there is a mix; `worth` is that of the node before.
  Score score(const NodeState& before, double worth, const Shape& shape, DeviceMask devices) const;
  /// How much the score of any node rises at least when so many more CPUs are asked for.
  std::uint64_t least_rise(std::int64_t milli_cpus) const;

 private:
  static constexpr int kFewestBetweenUpdates = 300;

  std::optional<Outlook> outlook_;
  LearntMix learnt_;
  bool given_ = false;
  bool due_ = false;
  int placed_ = 0;  ///< since the last look
  int placed_between_updates_ = kFewestBetweenUpdates;
};

}  // namespace drover::placement
