#include "control/retention.h"

#include <algorithm>
#include <deque>

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

}  // namespace drover::control
