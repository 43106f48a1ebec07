#include "control/retention.h"

#include <algorithm>
#include <deque>
#include <limits>

namespace drover::control {
namespace {

struct Holding {
  std::uint64_t bytes = 0;
  std::deque<std::pair<std::string, std::uint64_t>> may_go;  ///< oldest first, with what each takes up
};

std::map<uid_t, Holding> holdings_of(const State& state, const std::map<std::string, std::uint64_t>& bytes,
                                     TimePoint steady) {
  std::map<uid_t, Holding> holdings;
  for (const auto& [id, size] : bytes)
    if (const auto* record = state.find(id)) holdings[record->task.owner].bytes += size;
  for (const auto& [at, id] : state.ended) {
    if (at + kKeepForReading > steady) break;
    if (const auto size = bytes.find(id); size != bytes.end() && size->second > 0)
      holdings[state.tasks.at(id).task.owner].may_go.emplace_back(id, size->second);
  }
  std::erase_if(holdings, [](const auto& entry) { return entry.second.may_go.empty(); });
  return holdings;
}

}  // namespace

std::vector<std::string> tasks_to_forget(const State& state,
                                         const std::map<std::string, std::uint64_t>& bytes,
                                         std::uint64_t wanted, TimePoint steady) {
  std::vector<std::string> ids;
  auto holdings = holdings_of(state, bytes, steady);
  std::uint64_t gained = 0;
  while (gained < wanted && !holdings.empty()) {
    const auto most =
        std::ranges::max_element(holdings, {}, [](const auto& entry) { return entry.second.bytes; });
    auto& [owned, may_go] = most->second;
    const auto [id, size] = std::move(may_go.front());
    may_go.pop_front();
    ids.push_back(id);
    gained += size;
    owned -= size;
    if (may_go.empty()) holdings.erase(most);
  }
  return ids;
}

std::map<std::int64_t, std::size_t> events_to_forget(const std::map<std::int64_t, std::size_t>& counts,
                                                     std::size_t most) {
  const auto left_with = [&](std::size_t level) {
    std::size_t left = 0;
    for (const auto& [owner, count] : counts) left += std::min(count, level);
    return left;
  };
  std::size_t level = 0, too_much = most + 1;  // what each may keep
  while (too_much - level > 1) {
    const auto middle = level + (too_much - level) / 2;
    (left_with(middle) <= most ? level : too_much) = middle;
  }
  std::map<std::int64_t, std::size_t> lost;
  if (left_with(std::numeric_limits<std::size_t>::max()) <= most) return lost;
  for (const auto& [owner, count] : counts)
    if (count > level) lost.emplace(owner, count - level);
  return lost;
}

}  // namespace drover::control
