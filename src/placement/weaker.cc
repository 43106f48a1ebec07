#include "placement/weaker.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>

#include "placement/words.h"
#include "workload/resource_fields.h"

namespace drover::placement {
namespace {

constexpr std::size_t kMostMembers = 16;
constexpr std::uint64_t kMiB = 1ULL << 20;

bool fits(Cluster& cluster, const Gang& gang) {
  return std::holds_alternative<std::vector<Decision>>(place(cluster, gang));
}

/// The gang with every member changed.
Gang with(const Gang& gang, const std::function<void(Request&)>& change) {
  auto changed = gang;
  for (auto& member : changed.members) change(member);
  return changed;
}

/// Less near than `wanted`, nearest first; the last asks for nothing.
std::vector<Interconnect> less_near(const Interconnect& wanted) {
  using gpu::PcieLevel;
  std::vector<Interconnect> levels;
  if (wanted.max_pcie == PcieLevel::kUnknown)
    for (int links = wanted.min_nvlinks - 1; links > 0; --links)
      levels.push_back({links, PcieLevel::kUnknown});
  for (const auto level :
       {PcieLevel::kSwitch, PcieLevel::kSwitches, PcieLevel::kHostBridge, PcieLevel::kSameNuma})
    if (wanted.max_pcie == PcieLevel::kUnknown || level > wanted.max_pcie) levels.push_back({0, level});
  levels.emplace_back();
  return levels;
}

/// The largest in [1, below) that holds; the smaller, the easier it is to hold.
std::optional<std::int64_t> largest(std::int64_t below, const std::function<bool(std::int64_t)>& holds) {
  std::int64_t yes = 0;
  for (auto no = below; no - yes > 1;) {
    const auto middle = yes + (no - yes) / 2;
    (holds(middle) ? yes : no) = middle;
  }
  return yes > 0 ? std::optional(yes) : std::nullopt;
}

class Search {
 public:
  Search(Cluster& cluster, const Gang& gang) : cluster_(cluster), gang_(gang) {}

  std::vector<Weaker> run() {
    give_up_wishes();
    give_up_kinds();
    ask_for_less();
    return std::move(found_);
  }

 private:
  const Request& first() const { return gang_.members.front(); }
  bool alike() const {
    return std::all_of(gang_.members.begin(), gang_.members.end(),
                       [this](const Request& member) { return member == first(); });
  }
  const char* each() const { return gang_.members.size() > 1 ? " for each member" : ""; }

  bool try_it(const std::string& remedy, const std::function<void(Request&)>& change) {
    auto changed = with(gang_, change);
    if (changed == gang_ || !fits(cluster_, changed)) return false;
    found_.push_back({remedy, std::move(changed)});
    return true;
  }

  void give_up_wishes() {
    for (const auto& level :
         first().interconnect.asks() ? less_near(first().interconnect) : std::vector<Interconnect>()) {
      const auto words = level.asks() ? fmt::format("be content with the interconnect '{}'", to_string(level))
                                      : std::string("do not ask for an interconnect");
      if (try_it(words, [&](Request& request) { request.interconnect = level; })) break;
    }
    try_it("do not require CPUs near the GPUs", [](Request& request) {
      if (request.cpu_affinity == Wish::kRequire) request.cpu_affinity = Wish::kPrefer;
    });
    try_it("do not require a network card near the GPUs", [](Request& request) {
      if (request.nic == Wish::kRequire) request.nic = Wish::kPrefer;
    });
  }

  void try_filter(const std::string& remedy, void (*change)(DeviceFilter&)) {
    try_it(remedy, [&](Request& request) {
      for (auto& claim : request.gpus) change(claim.filter);
    });
  }

  void give_up_kinds() {
    try_it("take GPUs of one model", [](Request& request) { request.different_models = false; });
    try_filter("take GPUs of any model", [](DeviceFilter& filter) { filter.models.clear(); });
    try_filter("take GPUs with less memory", [](DeviceFilter& filter) { filter.min_memory_bytes = 0; });
    try_filter("take GPUs of a lower compute capability",
               [](DeviceFilter& filter) { filter.min_compute_capability.reset(); });
    try_filter("do not ask for ECC on or off", [](DeviceFilter& filter) { filter.ecc.reset(); });
  }

  /// Asks for the most of something that fits, of those that are below what is asked for now.
  void try_less(std::int64_t now, const std::function<void(Request&, std::int64_t)>& set,
                const std::function<std::string(std::int64_t)>& words) {
    const auto holds = [&](std::int64_t value) {
      return fits(cluster_, with(gang_, [&](Request& request) { set(request, value); }));
    };
    if (const auto most = largest(now, holds))
      try_it(words(*most) + each(), [&](Request& request) { set(request, *most); });
  }

  void ask_for_less() {
    if (!alike()) return;
    if (first().gpus.size() == 1 && !first().interconnect.asks())
      try_less(
          first().gpu_count(), [](Request& request, auto count) { request.gpus.front().count = int(count); },
          [](auto count) { return "ask for " + gpus_text(count); });
    if (!first().share.whole()) try_smaller_share();
    try_less(
        first().milli_cpus, [](Request& request, auto milli) { request.milli_cpus = milli; },
        [](auto milli) { return fmt::format("ask for {} CPUs", cpus_text(milli)); });
    try_less(
        static_cast<std::int64_t>(first().memory_bytes / kMiB),
        [](Request& request, auto mib) { request.memory_bytes = static_cast<std::uint64_t>(mib) * kMiB; },
        [](auto mib) { return fmt::format("ask for {} MiB of memory", mib); });
    try_smaller_gang();
  }

  void try_smaller_share() {
    if (first().share.memory_bytes == 0)
      try_less(
          first().share.milli, [](Request& request, auto milli) { request.share.milli = int(milli); },
          [](auto milli) { return "ask for a share of " + milli_text(milli); });
    else
      try_less(
          static_cast<std::int64_t>(first().share.memory_bytes / kMiB),
          [](Request& request, auto mib) {
            request.share.memory_bytes = static_cast<std::uint64_t>(mib) * kMiB;
          },
          [](auto mib) { return fmt::format("ask for a share of {} MiB", mib); });
  }

  void try_smaller_gang() {
    const auto of_size = [this](std::int64_t size) {
      auto smaller = gang_;
      smaller.members.resize(static_cast<std::size_t>(size));
      return smaller;
    };
    const auto size = static_cast<std::int64_t>(gang_.members.size());
    if (const auto most = largest(size, [&](auto count) { return fits(cluster_, of_size(count)); }))
      found_.push_back({fmt::format("make it a gang of {}", *most), of_size(*most)});
  }

  Cluster& cluster_;
  const Gang& gang_;
  std::vector<Weaker> found_;
};

}  // namespace

std::vector<Weaker> weaker_that_fit(Cluster& cluster, const Gang& gang) {
  if (gang.members.empty() || gang.members.size() > kMostMembers) return {};
  return Search(cluster, gang).run();
}

}  // namespace drover::placement
