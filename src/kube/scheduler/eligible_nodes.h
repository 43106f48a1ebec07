#pragma once

// On which nodes pods may run, by all that placement does not count: remembered for pods that are alike, and
// looked at again only where something has changed. One thread at a time.

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "kube/scheduler/cluster.h"
#include "kube/scheduler/pod.h"
#include "placement/request.h"

namespace drover::kube::scheduler {

class EligibleNodes {
 public:
  /// `cluster` outlives it.
  explicit EligibleNodes(const Cluster& cluster) : cluster_(cluster) {}

  /// Something on the node has changed: the node itself, or the pods on it.
  void note_node(const std::string& name);
  /// Something has changed that may matter to pods on any node.
  void note_all() { ++everything_; }

  /// The same pointer until something has changed in the answer. `pod` asks for nothing that placement
  /// counts; pods whose templates and labels are the same objects are alike.
  std::shared_ptr<const placement::Eligibility> of(const Pod& pod);
  /// Forgets pods of which there was none since the last call.
  void sweep();

 private:
  using Key = std::tuple<const PodTemplate*, const Labels*, std::string>;
  struct Entry {
    std::shared_ptr<const PodTemplate> made_from;  ///< so that nothing else comes to stand at their addresses
    std::shared_ptr<const Labels> labels;
    std::shared_ptr<const placement::Eligibility> nodes;
    std::uint64_t everything = 0;
    std::size_t seen = 0;  ///< of changes_
    bool others = false;   ///< pods on other nodes decided too
    bool used = true;
  };

  bool looks_at_others(const PodTemplate& made_from) const;
  void look(const Pod& pod, Entry& entry, bool at_all) const;

  const Cluster& cluster_;
  std::uint64_t everything_ = 1;
  std::vector<std::string> changes_;
  std::map<Key, Entry> entries_;
};

}  // namespace drover::kube::scheduler
