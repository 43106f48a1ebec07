#pragma once

// What keeps a waiting job from being planned that placement knows nothing of: host ports that somebody else
// has, constraints among the instances of a service, and images that work on nothing here. Pure.

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "control/draft.h"

namespace drover::control {

/// Host ports that tasks are given.
inline constexpr int kFirstPort = 31000;
inline constexpr int kLastPort = 32000;

/// The ports of the machine that running tasks have, and those of programs that are none of ours.
class PortsInUse {
 public:
  explicit PortsInUse(const Draft& draft);

  bool is_foreign(int port) const { return foreign_.contains(port); }
  bool has(int port) const { return taken_.contains(port); }
  std::size_t free() const;  ///< of the range
  void take_named(const workload::Network& network);
  /// A free one of the range, taken; none when there is none. Not the lowest: what has just ended may leave
  /// its port busy for a while. `salt` says where to begin.
  std::optional<int> take_any(std::uint64_t salt);
  /// By the ports of the task's network, those that it names itself included.
  std::vector<int> take_for(const workload::Network& network, std::uint64_t salt);

 private:
  std::set<int> foreign_;
  std::set<int> taken_;  ///< those of strangers too
};

/// To be asked for those who wait in the order of their acceptance: who may be planned lays hold on what he
/// needs, so that two who exclude each other do not start together.
class Holds {
 public:
  explicit Holds(const Draft& draft) : draft_(draft), ports_(draft) {}

  /// Why the job has to wait; none: it may be planned.
  std::optional<std::string> claim(const std::vector<const TaskRecord*>& members);

 private:
  std::optional<std::string> image_refusal(const TaskRecord& record) const;
  std::optional<std::string> port_refusal(const TaskRecord& record);
  std::optional<std::string> constraint_refusal(const TaskRecord& record);

  const Draft& draft_;
  PortsInUse ports_;
  std::size_t any_claimed_ = 0;         ///< ports of the range, whichever
  std::map<std::string, int> claimed_;  ///< instances that may be planned, by service
};

}  // namespace drover::control
