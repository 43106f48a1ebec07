#pragma once

// What is allocated: by id, and by group. Says nothing about what is free. A value; copies share what does
// not change.

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/cow.h"
#include "placement/decision.h"
#include "placement/request.h"

namespace drover::placement {

struct Allocation {
  Decision decision;
  std::int64_t milli_cpus = 0;
  std::uint64_t memory_bytes = 0;
  std::string group;
};

/// The GPUs that the containers of one group share.
struct Group {
  std::string node;
  std::vector<Grant> gpus;
  std::vector<DeviceClaim> claims;
  Share share;
  bool by_mps = false;  ///< they share them so, all or none
  int members = 0;
};

class Ledger {
 public:
  const Allocation* find(const std::string& id) const;
  const Group* group(const std::string& name) const;

  /// Whether it takes the GPUs of its decision: not when others of its group have them already. The id is
  /// new. A group that has other GPUs is not joined.
  bool add(const std::string& id, const Request& request, const Decision& decision);

  struct Removed {
    std::shared_ptr<const Allocation> allocation;
    bool frees_gpus = false;  ///< not while others of its group have them
  };
  /// The id is known.
  Removed remove(const std::string& id);

  /// Calls visit(allocation, takes_gpus) for all that is on the node. Looks at everything: for the rare node
  /// whose hardware changed.
  template <typename Visit>
  void visit_node(const std::string& node, const Visit& visit) const {
    std::unordered_set<std::string> groups;
    for (const auto& shard : shards_) {
      if (!shard) continue;
      for (const auto& [id, allocation] : *shard)
        if (allocation->decision.node == node)
          visit(*allocation, allocation->group.empty() || groups.insert(allocation->group).second);
    }
  }

 private:
  using Shard = std::unordered_map<std::string, std::shared_ptr<const Allocation>>;

  Cow<Shard>& shard(const std::string& id) { return shards_[std::hash<std::string>()(id) % shards_.size()]; }

  std::array<Cow<Shard>, 256> shards_;  ///< so that a copy that changes copies little
  Cow<std::unordered_map<std::string, Group>> groups_;
};

}  // namespace drover::placement
