#pragma once

// MPS between the tasks of a group, on this machine: what container/mps_book.h asks for, by
// share/host_shares.h. Thread safe; blocks while NVIDIA's programs answer.

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "container/mps_book.h"
#include "share/host_shares.h"

namespace drover {

class GroupShares : public container::MpsMaker {
 public:
  explicit GroupShares(std::shared_ptr<share::HostShares> shares) : shares_(std::move(shares)) {}

  Result<share::MpsPlaces> make(const std::string& group, const std::vector<std::string>& gpus) override;
  Status end(const std::string& group) override;
  Status keep_only(const std::set<std::string>& groups) override;

 private:
  std::shared_ptr<share::HostShares> shares_;
};

}  // namespace drover
