#pragma once

// Members of a gang that are put on the cluster for as long as the rest is looked for.

#include <optional>
#include <string>
#include <vector>

#include "placement/cluster.h"

namespace drover::placement {

class Trial {
 public:
  explicit Trial(Cluster& cluster) : cluster_(cluster), learning_(cluster.set_learning(false)) {}
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;
  ~Trial() {
    undo(0);
    cluster_.set_learning(learning_);
  }

  struct Placed {
    std::size_t rank = 0;
    Decision decision;
  };
  const std::vector<Placed>& placed() const { return placed_; }

  /// Where it fits best; false when it fits nowhere.
  bool put(std::size_t rank, const Request& request) {
    return take(rank, request, cluster_.try_place(request));
  }
  bool put_on(const std::string& node, std::size_t rank, const Request& request) {
    return take(rank, request, cluster_.try_place_on(node, request));
  }
  bool take(std::size_t rank, const Request& request, std::optional<Decision> decision) {
    if (!decision || !cluster_.allocate(id(rank), request, *decision)) return false;
    placed_.push_back({rank, *std::move(decision)});
    return true;
  }
  /// Gives back all but the first `keep`.
  void undo(std::size_t keep) {
    for (; placed_.size() > keep; placed_.pop_back()) cluster_.release(id(placed_.back().rank));
  }

 private:
  static std::string id(std::size_t rank) { return "\x01gang/" + std::to_string(rank); }

  Cluster& cluster_;
  bool learning_;
  std::vector<Placed> placed_;
};

}  // namespace drover::placement
