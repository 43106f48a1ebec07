#include "placement/gang.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "placement/gang_search.h"

namespace drover::placement {
namespace {

constexpr std::size_t kMostMembers = 4096;
constexpr std::int64_t kEffortForPossible = 1'000'000;  ///< once for each job

Failure of_member(std::size_t rank, Error error) {
  error.path = fmt::format("/members/{}{}", rank, error.path);
  return Failure(std::move(error));
}

std::string not_all_text(const Gang& gang, std::size_t placed) {
  const auto count = gang.members.size();
  return gang.arrangement == Arrangement::kSpread
             ? fmt::format("{} of {} members find a node of their own", placed, count)
             : fmt::format("{} of {} members fit", placed, count);
}

Reasons why_not(Cluster& cluster, const Gang& gang, const GangSearch& search) {
  if (search.without_place) {
    auto reasons = std::get<Reasons>(cluster.place(gang.members[*search.without_place]));
    if (!alike(gang))
      reasons.list.push_back(
          {Dimension::kGang, 0, fmt::format("it is member {} that has no place", *search.without_place)});
    return reasons;
  }
  return {static_cast<int>(cluster.nodes().size()),
          {{Dimension::kGang, 0, not_all_text(gang, search.placed) + " now"}},
          {}};
}

}  // namespace

bool alike(const Gang& gang) {
  return std::ranges::all_of(gang.members,
                             [&](const Request& member) { return member == gang.members.front(); });
}

Status validate(const Gang& gang) {
  if (gang.members.empty())
    return fail(ErrorKind::kInvalid, "A gang has at least one member", "", "/members");
  if (gang.members.size() > kMostMembers)
    return fail(ErrorKind::kInvalid, fmt::format("A gang has at most {} members", kMostMembers), "",
                "/members");
  std::set<std::string> groups;
  for (std::size_t i = 0; i < gang.members.size(); ++i) {
    if (auto status = validate(gang.members[i]); !status) return of_member(i, status.error());
    if (gang.members.size() > 1 && !gang.members[i].part.empty())
      return fail(ErrorKind::kInvalid, "The members of a gang cannot have parts of GPUs",
                  "ask for whole GPUs, or for several parts in one task", fmt::format("/members/{}/part", i));
    const auto& group = gang.members[i].group;
    if (gang.arrangement == Arrangement::kSpread && !group.empty() && !groups.insert(group).second)
      return fail(ErrorKind::kInvalid, "Members that share their GPUs cannot be spread over nodes",
                  "give each a group of its own", fmt::format("/members/{}/group", i));
  }
  return {};
}

std::variant<std::vector<Decision>, Reasons> place(Cluster& cluster, const Gang& gang) {
  if (gang.members.size() == 1) {
    auto answer = cluster.place(gang.members.front());
    if (auto* reasons = std::get_if<Reasons>(&answer)) return std::move(*reasons);
    return std::vector{std::get<Decision>(std::move(answer))};
  }
  Effort effort;
  auto result = search(cluster, gang, effort);
  if (result.decisions) return *std::move(result.decisions);
  return why_not(cluster, gang, result);
}

std::optional<std::vector<Decision>> try_place(Cluster& cluster, const Gang& gang) {
  Effort effort;
  return try_place(cluster, gang, effort);
}

std::optional<std::vector<Decision>> try_place(Cluster& cluster, const Gang& gang, Effort& effort) {
  if (gang.members.size() > 1) return search(cluster, gang, effort).decisions;
  auto decision = cluster.try_place(gang.members.front());
  if (!decision) return std::nullopt;
  return std::vector{*std::move(decision)};
}

Status possible(const Cluster& cluster, const Gang& gang) {
  for (std::size_t i = 0; i < gang.members.size(); ++i)
    if (i == 0 || gang.members[i] != gang.members[i - 1])
      if (auto status = cluster.possible(gang.members[i]); !status) return of_member(i, status.error());
  if (gang.members.size() == 1) return {};
  auto empty = cluster.emptied();
  Effort effort{kEffortForPossible};
  const auto result = search(empty, gang, effort);
  if (result.decisions || !result.certain) return {};
  return fail(ErrorKind::kInvalid,
              fmt::format("All members at once can never start here: {}", not_all_text(gang, result.placed)),
              result.placed > 0 ? fmt::format("ask for at most {}", result.placed) : "", "/members");
}

}  // namespace drover::placement
