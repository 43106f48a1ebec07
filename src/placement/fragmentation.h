#pragma once

// NodePolicy::kFragmentation: the place is taken where free room loses the least of its worth to typical
// requests (outlook.h), of equals where the least is free. Until a mix is known, it is NodePolicy::kPack.
// Deterministic; not thread safe, not even where const: worths are remembered. A copy remembers none.

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "placement/outlook.h"
#include "placement/score.h"
#include "placement/typical.h"

namespace drover::placement {

class Fragmentation {
 public:
  Fragmentation() = default;
  Fragmentation(const Fragmentation& other);
  Fragmentation& operator=(const Fragmentation& other);
  Fragmentation(Fragmentation&&) noexcept = default;
  Fragmentation& operator=(Fragmentation&&) noexcept = default;

  /// The mix from now on; nothing is learnt any more.
  void set_mix(std::vector<TypicalRequest> mix);
  /// Learns from it, unless the mix was given; what is free has changed.
  void note_placed(const Request& request);
  /// Nodes came, went or became of another kind.
  void note_nodes() { due_ = true; }

  /// Whether look_at() has to be called before the next score().
  bool due() const { return due_; }
  void look_at(const std::vector<const NodeState*>& nodes);

  /// None while no mix is known.
  std::optional<Score> score(const NodeState& before, const Shape& shape, DeviceMask devices) const;

 private:
  static constexpr int kFewestBetweenLooks = 300;

  double worth(const NodeState& node) const;

  std::optional<Outlook> outlook_;
  LearntMix learnt_;
  bool given_ = false;
  bool due_ = false;
  int placed_ = 0;  ///< since the last look
  int placed_between_looks_ = kFewestBetweenLooks;
  mutable std::unordered_map<std::string, double> worths_;  ///< by what the outlook sees of a node
};

}  // namespace drover::placement
