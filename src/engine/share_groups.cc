#include "engine/share_groups.h"

#include <utility>

#include "control/group_name.h"

namespace drover::engine {

void ShareGroups::update(const control::State& state) {
  std::map<std::string, std::vector<std::string>> members;
  for (const auto& id : state.active) {
    const auto& task = state.tasks.at(id).task;
    if (auto group = control::group_of(task); !group.empty()) members[std::move(group)].push_back(id);
  }
  const std::lock_guard lock(mutex_);
  members_ = std::move(members);
}

std::vector<std::string> ShareGroups::members(const std::string& group) const {
  const std::lock_guard lock(mutex_);
  const auto found = members_.find(group);
  return found == members_.end() ? std::vector<std::string>() : found->second;
}

}  // namespace drover::engine
