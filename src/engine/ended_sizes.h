#pragma once

// What ended tasks take up on the disk. It changes no more, so each is looked at once. Owned by the control
// strand.

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "control/state.h"
#include "engine/ports.h"

namespace drover::engine {

class EndedSizes {
 public:
  explicit EndedSizes(const control::State& state) : state_(state) {}

  /// Adds those that were not looked at yet; of one user, or of all.
  void add_unseen(std::vector<TaskProcesses>& tasks, std::optional<uid_t> owner = std::nullopt) {
    std::erase_if(bytes_, [&](const auto& entry) { return !state_.tasks.contains(entry.first); });
    for (const auto& [at, id] : state_.ended)
      if (!bytes_.contains(id) && (!owner || state_.tasks.at(id).task.owner == *owner)) tasks.push_back({id});
  }
  /// Of a task that was looked at; kept when it has ended.
  void seen(const std::string& id, std::uint64_t bytes) {
    if (const auto* record = state_.find(id); record != nullptr && control::is_final(record->state))
      bytes_[id] = bytes;
  }
  const std::map<std::string, std::uint64_t>& bytes() const { return bytes_; }

 private:
  const control::State& state_;
  std::map<std::string, std::uint64_t> bytes_;
};

}  // namespace drover::engine
