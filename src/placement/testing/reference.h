#pragma once

// Placement as its headers define it, tried out instead of computed: every set of devices of every node. For
// clusters of a few small nodes, in property tests. Shares no code with what it is compared to, but for the
// words of model filters.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "placement/decision.h"
#include "placement/node.h"
#include "placement/request.h"

namespace drover::placement::testing {

class Reference {
 public:
  std::map<std::string, Node> nodes;

  struct Taken {
    Request request;
    Decision decision;
  };
  std::map<std::string, Taken> taken;  ///< by id

  /// Whether some set of devices of the node would do.
  bool fits(const Node& node, const Request& request) const;
  /// The same if the node were empty, healthy and not cordoned.
  bool could_fit(const Node& node, const Request& request) const;
  /// Whether this decision may be taken now; what is wrong with it otherwise.
  std::string wrong_with(const Request& request, const Decision& decision) const;
  /// Every decision on the node that may be taken now, preferred CPUs pinned or not. Of requests without a
  /// group.
  std::vector<Decision> decisions(const Node& node, const Request& request) const;
  /// Whether anything is given out twice; what, if so.
  std::string given_twice() const;

 private:
  struct Use {
    int milli = 0;
    std::uint64_t memory = 0;
  };
  struct Host {
    std::int64_t milli_cpus = 0;
    std::uint64_t memory = 0;
    std::int64_t pinned[3] = {};  ///< to the first NUMA node, the second, both
  };
  Use use_of(const std::string& uuid) const;
  Host host_of(const Node& node) const;
  const Taken* of_group(const std::string& group) const;
  bool set_will_do(const Node& node, const Request& request, const std::vector<std::size_t>& set,
                   bool empty) const;
  /// CPUs that the request is pinned to when it gets these devices.
  std::vector<int> near_cpus(const Node& node, const Request& request,
                             const std::vector<std::size_t>& set) const;
  bool pinnable(const Node& node, int numa_mask, std::int64_t milli_cpus, bool empty) const;
};

}  // namespace drover::placement::testing
