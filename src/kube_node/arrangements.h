#pragma once

// Time slices and MPS on a node of a cluster: for claims, and for GPUs that pods share by limits. Whoever has
// them is told apart by name, and the room `share` does the rest. Thread safe; blocks.

#include <functional>
#include <set>
#include <string>

#include "base/result.h"
#include "kube/dra/preparer.h"
#include "kube/plugin/resources.h"
#include "share/host_shares.h"

namespace drover {

class KubeArrangements : public kube::dra::ClaimSharing {
 public:
  explicit KubeArrangements(share::HostShares::Options options) : shares_(std::move(options)) {}

  Result<cdi::Edits> make(const std::string& uid, const share::Arrangement& arrangement) override;
  Status undo(const std::string& uid) override;
  Status keep_only(const std::set<std::string>& uids) override;

  /// Somebody is about to have the GPU by a limit: its daemon runs when this returns.
  Result<share::MpsPlaces> share(const kube::ReplicaShare& gpu);
  /// Ends the daemons of GPUs that nobody has by a limit; `holders` is asked while share() waits.
  Status drop_unused(const std::function<kube::Holders()>& holders);
  /// Claims are to have these GPUs, and nobody has them by a limit any more.
  Status make_way(const std::set<std::string>& uuids);
  Status keep() { return shares_.keep(); }

 private:
  share::HostShares shares_;
};

}  // namespace drover
