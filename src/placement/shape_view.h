#pragma once

// How all nodes look to one shape of request: which is best, and what keeps the others off. Brought up to
// date by looking only at the nodes that changed since it was used last.
//
// Requests that differ in nothing but CPUs and memory share a view, of a request without CPUs. Where the
// policy compares nodes by CPUs, its scores are bounds, and only the nodes that may be best are looked at
// again with the CPUs that are asked for.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "placement/node_table.h"
#include "placement/policies.h"

namespace drover::placement {

/// How many nodes an obstacle keeps off, and the first of them.
struct Tally {
  Obstacle obstacle;
  int nodes = 0;
  std::size_t first = 0;
};

/// What one node is to a request, free CPUs and memory left out.
struct Evaluation {
  std::optional<Obstacle> obstacle;
  Score score = kNoScore;  ///< where there is no obstacle
};
Evaluation evaluate(const PolicyContext& context, const NodeEntry& entry, const Shape& shape,
                    OptionMemory* memory);

class ShapeView {
 public:
  /// Of requests that may differ from this one in memory, and ask for as many CPUs or more.
  explicit ShapeView(const Request& request);
  ShapeView(const ShapeView& other);
  ShapeView& operator=(const ShapeView&) = delete;

  const Request& request() const { return shape_.request(); }
  /// What the request is on each kind of node.
  const std::shared_ptr<KindFits>& fits() const { return fits_; }
  bool up_to_date(const NodeTable& nodes) const { return seen_ == nodes.sequence(); }
  void update(const NodeTable& nodes, const PolicyContext& context);

  /// Slot of the best node with so much free; the lowest of equals.
  std::optional<std::size_t> best(const NodeTable& nodes, const PolicyContext& context,
                                  const Request& request) const;
  /// Every node that fits, best first.
  std::vector<std::size_t> fitting(const NodeTable& nodes, const PolicyContext& context,
                                   const Request& request) const;
  std::size_t count_fitting(const NodeTable& nodes, std::int64_t milli_cpus, std::int64_t memory) const;
  /// What keeps off each node, by obstacle. The request with so many CPUs and so much memory fits nowhere.
  std::vector<Tally> tallies(const NodeTable& nodes, std::int64_t milli_cpus) const;

 private:
  void reset(const NodeTable& nodes);
  void set(std::size_t slot, const Evaluation& evaluation);
  void refresh_blocks();
  bool exact_for(const PolicyContext& context, const Request& request) const;
  template <typename Visit>
  void for_each_below(const NodeTable& nodes, const Request& request, const Score& bound,
                      const Visit& visit) const;
  bool fits(const NodeTable& nodes, std::size_t slot, std::int64_t milli_cpus, std::int64_t memory) const;
  std::uint64_t code_of(const std::optional<Obstacle>& obstacle);

  std::shared_ptr<KindFits> fits_;
  Shape shape_;
  OptionMemory memory_;
  std::optional<std::uint64_t> seen_;
  std::vector<Score> scores_;                ///< [slot]
  std::vector<std::uint32_t> stale_blocks_;  ///< whose best may be worse than block_best_ says
  std::vector<Score> block_best_;            ///< [slot / kBlockSize]
  std::vector<Tally> tallies_;               ///< without `first`
};

/// Views that were used lately. Copies share them until they change.
class ViewCache {
 public:
  /// The view for such a request, up to date.
  const ShapeView& view(const Request& request, const NodeTable& nodes, const PolicyContext& context);
  /// What such a request is on each kind of node; looks at no node.
  std::shared_ptr<KindFits> fits(const Request& request);
  /// Forgets all: slots or the context changed.
  void clear() { entries_.clear(); }

 private:
  struct Entry {
    std::uint64_t hash = 0;
    std::uint64_t used = 0;
    std::shared_ptr<ShapeView> view;
  };
  Entry& entry(const Request& request);

  std::vector<Entry> entries_;
  std::uint64_t uses_ = 0;
};

}  // namespace drover::placement
