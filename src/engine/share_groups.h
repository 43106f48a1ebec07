#pragma once

// Which tasks have a share of GPUs together, by their group: told on the control strand, and asked by
// launches on their threads. Thread safe.

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "control/state.h"

namespace drover::engine {

class ShareGroups {
 public:
  /// From now on those that are active.
  void update(const control::State& state);
  /// By the name that placement has for the group (control::group_of).
  std::vector<std::string> members(const std::string& group) const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::vector<std::string>> members_;
};

}  // namespace drover::engine
