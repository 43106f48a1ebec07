#pragma once

// Nodes, what of them is taken, and where the next request goes. Deterministic: the same calls in the same
// order give the same answers. A value: copies share what does not change, so a copy for a thought experiment
// is cheap. Not thread safe. The cost of a decision depends on what has changed since the last one like it,
// not on the number of nodes.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "placement/decision.h"
#include "placement/node.h"
#include "placement/request.h"
#include "placement/typical.h"

namespace drover::placement {

/// Which of several nodes that fit.
enum class NodePolicy {
  kPack,           ///< the one that is left with the least, so that others stay whole
  kSpread,         ///< the one that is left with the most
  kFragmentation,  ///< the one where the least of what typical requests could use is lost: fragmentation.h
};

/// "pack", "spread" or "fragmentation"; none for others.
std::optional<NodePolicy> node_policy(std::string_view name);

/// What is free on one node.
struct Free {
  int gpus = 0;                ///< whole and healthy
  std::int64_t gpu_milli = 0;  ///< over all healthy GPUs
  std::int64_t milli_cpus = 0;
  std::uint64_t memory_bytes = 0;

  bool operator==(const Free&) const = default;
};

class Cluster {
 public:
  explicit Cluster(NodePolicy policy = NodePolicy::kPack);
  Cluster(const Cluster&);
  Cluster& operator=(const Cluster&);
  Cluster(Cluster&&) noexcept;
  Cluster& operator=(Cluster&&) noexcept;
  ~Cluster();

  /// The mix that kFragmentation expects from now on. Without it, the mix is learnt from what is allocated.
  void set_workload(std::vector<TypicalRequest> mix);

  /// Adds the node, or replaces the one of that name: what is allocated on it stays, found again by UUID,
  /// also when the device is no longer listed.
  void set_node(Node node);
  /// kConflict while something is allocated on it.
  Status remove_node(const std::string& name);
  const Node* node(const std::string& name) const;
  std::vector<std::string> nodes() const;  ///< names, in order of addition
  std::size_t size() const;                ///< how many there are
  /// What is allocated on a node may be more than it has, after it shrank: then 0.
  Free free(const std::string& node) const;
  /// What is left of one GPU, healthy or not: nothing of one that is not there.
  workload::Share left_of(const std::string& node, const std::string& gpu) const;

  /// Where a valid request would go now. Changes nothing that can be seen.
  Answer place(const Request& request);
  /// The same, without saying why when there is no place: cheaper, for trying many things.
  std::optional<Decision> try_place(const Request& request);
  /// The nodes where it fits now: their positions in nodes(), best first; or how many.
  std::vector<std::size_t> fitting_positions(const Request& request);
  std::size_t count_fitting(const Request& request);
  /// The same on one node only.
  Answer place_on(const std::string& node, const Request& request);
  std::optional<Decision> try_place_on(const std::string& node, const Request& request);
  /// On that node in all ways that make a difference, not more than `most`, in no order. Which of several
  /// GPUs that are alike in everything makes none; whether preferred CPUs are pinned does.
  struct Ways {
    std::vector<Decision> decisions;
    bool complete = true;  ///< none was left out
    int tried = 0;         ///< sets of GPUs, for who has to reckon with the time
  };
  Ways ways_on(const std::string& node, const Request& request, std::size_t most);
  /// Whether every request without a group sees the same in both nodes, but for their names.
  bool alike(const std::string& a, const std::string& b) const;
  /// An error when not even the empty cluster, without cordons and with all GPUs healthy, could hold the
  /// request.
  Status possible(const Request& request) const;
  /// The same nodes without cordons, all GPUs healthy, and nothing allocated.
  Cluster emptied() const;

  /// Takes it. kConflict when the id is taken already or a device, share, CPU or memory is not free: then
  /// nothing changed.
  Status allocate(const std::string& id, const Request& request, const Decision& decision);
  /// Takes what a journal says is taken, without asking whether it is free: after a restart a node may have
  /// shrunk, and its work still runs.
  void restore(const std::string& id, const Request& request, const Decision& decision);
  /// Unknown ids are harmless. The GPUs of a group are free when its last container is released.
  void release(const std::string& id);
  const Decision* find(const std::string& id) const;

  /// Lets go of what is kept to decide quicker, which copies share: then the copy may live on another thread.
  /// Not for kFragmentation.
  void detach();

  /// Whether kFragmentation learns from what is allocated; off for thought experiments. Returns what it was.
  bool set_learning(bool on);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace drover::placement
