#include "kube/scheduler/node_holds.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace drover::kube::scheduler {
namespace {

using namespace std::chrono_literals;

constexpr auto kStrangersCount = 60s;
constexpr int kStrangersAtOnce = 2;   // that may come while one of ours is bound
constexpr auto kHoldSettles = 500ms;  // what others had decided before they saw the taint
constexpr auto kUnusedHold = 10s;
constexpr auto kUnwantedHold = 2s;  // and nobody waits
constexpr auto kLongestHold = 60s;  // then others get their turn
constexpr auto kRestOfNode = 15s;
constexpr auto kUntilHoldIsTold = 5s;

}  // namespace

void NodeHolds::note_node(const std::string& name, bool held, TimePoint now) {
  if (!held && !nodes_.contains(name)) return;
  auto& state = nodes_[name];
  if (state.held == held) return;
  state.held = held;
  state.since = state.used = now;
  state.asked = {};
}

void NodeHolds::note_stranger(const std::string& node, const Resources& requests, TimePoint now) {
  auto& state = nodes_[node];
  if (now - state.stranger > kStrangersCount) state.largest = {};
  state.stranger = now;
  state.largest.cpu = std::max(state.largest.cpu, requests.cpu);
  state.largest.memory = std::max(state.largest.memory, requests.memory);
}

bool NodeHolds::may_use(const std::string& node, const Resources& left, bool matters, TimePoint now) {
  const auto found = nodes_.find(node);
  if (found == nodes_.end()) return true;
  auto& state = found->second;
  if (state.held) {
    state.used = now;
    return now - state.since >= kHoldSettles && state.asked == TimePoint{};
  }
  if (now - state.stranger > kStrangersCount) return true;
  const auto& largest = state.largest;
  if (left.cpu >= kStrangersAtOnce * largest.cpu && left.memory >= kStrangersAtOnce * largest.memory)
    return true;
  state.wished = state.wished || matters;
  return false;
}

NodeHolds::Changes NodeHolds::changes(bool someone_waits, TimePoint now) {
  Changes changes;
  const auto again_at = [&](TimePoint at) { changes.again = std::min(changes.again.value_or(at), at); };
  for (auto node = nodes_.begin(); node != nodes_.end();) {
    auto& [name, state] = *node;
    const bool wished = std::exchange(state.wished, false);
    const bool asked = now - state.asked < kUntilHoldIsTold;
    if (state.held && !asked) {
      const bool long_held = now - state.since > kLongestHold;
      if (long_held || now - state.used > (someone_waits ? kUnusedHold : kUnwantedHold)) {
        changes.release.push_back(name);
        state.asked = now;
        if (long_held) state.rests_until = now + kRestOfNode;
      } else {
        again_at(now - state.since < kHoldSettles ? state.since + kHoldSettles : now + 1s);
      }
    } else if (wished && !asked) {
      if (now >= state.rests_until) {
        changes.hold.push_back(name);
        state.asked = now;
      } else {
        again_at(state.rests_until);
      }
    }
    const bool forgotten =
        !state.held && !asked && now - state.stranger > kStrangersCount && now > state.rests_until;
    node = forgotten ? nodes_.erase(node) : std::next(node);
  }
  return changes;
}

}  // namespace drover::kube::scheduler
