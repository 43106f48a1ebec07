#include "group_shares.h"

#include "container/containerizer.h"

namespace drover {

Result<share::MpsPlaces> GroupShares::make(const std::string& group, const std::vector<std::string>& gpus) {
  share::Arrangement wanted;
  wanted.mps.emplace().gpus = gpus;
  if (auto made = shares_->make(group, wanted); !made)
    return Failure(context(made.error(), "its GPUs cannot be shared by MPS"));
  return shares_->places(group);
}

Status GroupShares::end(const std::string& group) {
  return shares_->end(group);
}

Status GroupShares::keep_only(const std::set<std::string>& groups) {
  return shares_->keep_only("", [&](const std::string& owner) { return groups.contains(owner); });
}

}  // namespace drover
