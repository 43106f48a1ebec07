#include "placement/gang.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>

namespace drover::placement {
namespace {

constexpr std::size_t kMostMembers = 4096;

/// Members put on a copy of nothing: they are allocated while the rest is looked for, and released in the
/// end.
class Trial {
 public:
  explicit Trial(Cluster& cluster) : cluster_(cluster) {}
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;
  ~Trial() {
    for (const auto rank : taken_) cluster_.release(id(rank));
  }

  bool take(std::size_t rank, const Request& request, const Decision& decision) {
    if (!cluster_.allocate(id(rank), request, decision)) return false;
    taken_.push_back(rank);
    return true;
  }
  std::size_t count() const { return taken_.size(); }

 private:
  static std::string id(std::size_t rank) { return fmt::format("\x01gang/{}", rank); }

  Cluster& cluster_;
  std::vector<std::size_t> taken_;
};

/// Those that are hardest to place first; equal ones by rank, so that neighbours follow each other.
std::vector<std::size_t> placing_order(const Gang& gang) {
  std::vector<std::size_t> ranks(gang.members.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  const auto size = [&](std::size_t rank) {
    const auto& member = gang.members[rank];
    return std::tuple(
        -std::int64_t{member.gpu_count()} * (member.share.memory_bytes > 0 ? 1000 : member.share.milli),
        -member.milli_cpus, ~member.memory_bytes, rank);
  };
  std::ranges::sort(ranks, {}, size);
  return ranks;
}

/// The next member's place: where the members before it are, when it is to be packed; elsewhere, when not.
std::optional<Decision> next_place(Cluster& cluster, const Request& request, Arrangement arrangement,
                                   const std::vector<std::string>& used) {
  if (arrangement == Arrangement::kAny) return cluster.try_place(request);
  if (arrangement == Arrangement::kPack) {
    for (auto node = used.rbegin(); node != used.rend(); ++node) {
      auto answer = cluster.place_on(*node, request);
      if (auto* decision = std::get_if<Decision>(&answer)) return std::move(*decision);
    }
    return cluster.try_place(request);
  }
  for (const auto& node : cluster.fitting(request)) {
    if (std::ranges::find(used, node) != used.end()) continue;
    auto answer = cluster.place_on(node, request);
    if (auto* decision = std::get_if<Decision>(&answer)) return std::move(*decision);
  }
  return std::nullopt;
}

Reasons not_all(Cluster& cluster, const Gang& gang, std::size_t rank, std::size_t fit) {
  auto alone = cluster.place(gang.members[rank]);
  if (auto* reasons = std::get_if<Reasons>(&alone)) return std::move(*reasons);
  const auto text =
      gang.arrangement == Arrangement::kSpread
          ? fmt::format("{} of {} members fit now, each on a node of its own", fit, gang.members.size())
          : fmt::format("{} of {} members fit now", fit, gang.members.size());
  return {.nodes = static_cast<int>(cluster.nodes().size()), .list = {{Dimension::kGang, 0, text}}};
}

}  // namespace

Status validate(const Gang& gang) {
  if (gang.members.empty())
    return fail(ErrorKind::kInvalid, "A gang has at least one member", "", "/members");
  if (gang.members.size() > kMostMembers)
    return fail(ErrorKind::kInvalid, fmt::format("A gang has at most {} members", kMostMembers), "",
                "/members");
  std::set<std::string> groups;
  for (std::size_t i = 0; i < gang.members.size(); ++i) {
    const auto path = fmt::format("/members/{}", i);
    if (auto status = validate(gang.members[i]); !status) {
      auto error = status.error();
      error.path = path + error.path;
      return Failure(error);
    }
    const auto& group = gang.members[i].group;
    if (gang.arrangement == Arrangement::kSpread && !group.empty() && !groups.insert(group).second)
      return fail(ErrorKind::kInvalid, "Members that share their GPUs cannot be spread over nodes",
                  "give each a group of its own", path + "/group");
  }
  return {};
}

std::variant<std::vector<Decision>, Reasons> place(Cluster& cluster, const Gang& gang) {
  if (gang.members.size() == 1) {
    auto answer = cluster.place(gang.members.front());
    if (auto* reasons = std::get_if<Reasons>(&answer)) return std::move(*reasons);
    return std::vector{std::get<Decision>(std::move(answer))};
  }
  std::vector<Decision> decisions(gang.members.size());
  std::vector<std::string> used;
  std::optional<std::size_t> failed;
  std::size_t fit = 0;
  {
    Trial trial(cluster);
    for (const auto rank : placing_order(gang)) {
      auto decision = next_place(cluster, gang.members[rank], gang.arrangement, used);
      if (!decision || !trial.take(rank, gang.members[rank], *decision)) {
        failed = rank;
        break;
      }
      if (std::ranges::find(used, decision->node) == used.end()) used.push_back(decision->node);
      decisions[rank] = *std::move(decision);
    }
    fit = trial.count();
  }
  if (failed) return not_all(cluster, gang, *failed, fit);
  return decisions;
}

Status possible(const Cluster& cluster, const Gang& gang) {
  for (std::size_t i = 0; i < gang.members.size(); ++i)
    if (auto status = cluster.possible(gang.members[i]); !status) {
      auto error = status.error();
      error.path = fmt::format("/members/{}", i) + error.path;
      return Failure(error);
    }
  Cluster empty;
  for (const auto& name : cluster.nodes()) {
    auto node = *cluster.node(name);
    node.cordoned.clear();
    for (auto& device : node.inventory.devices) device.unfit.clear();
    empty.set_node(std::move(node));
  }
  const auto answer = place(empty, gang);
  const auto* reasons = std::get_if<Reasons>(&answer);
  if (reasons == nullptr) return {};
  return fail(ErrorKind::kInvalid,
              "Not even the empty cluster could hold all members: " + describe(*reasons).front(), "",
              "/members");
}

}  // namespace drover::placement
