#include "regret.h"

#include <fmt/format.h>

#include <bit>
#include <nlohmann/json.hpp>

#include "baselines.h"
#include "placement/device_choice.h"

namespace drover::bench {
namespace {

using nlohmann::json;

constexpr int kMostExhaustive = 16;
constexpr int kSampledMachines = 4;  // parts of 16 GPUs of a larger machine
constexpr int kSampledSets = 100;    // free sets of each

/// What one way of choosing loses. A criterion counts where all before it are met: it is then never negative.
class Losses {
 public:
  void add(const Interconnect& best, const Interconnect& own, bool same_set) {
    ++choices_;
    if (!same_set) ++different_;
    if (own == best) return;
    ++worse_;
    if (own.nvlinks != best.nvlinks)
      aggregate_ += static_cast<double>(best.nvlinks - own.nvlinks) / static_cast<double>(best.nvlinks);
    else if (own.weakest != best.weakest)
      weakest_ += static_cast<double>(best.weakest - own.weakest);
    else if (own.nearness != best.nearness)
      nearness_ += static_cast<double>(best.nearness - own.nearness);
    else
      left_ += static_cast<double>(best.nvlinks_left - own.nvlinks_left);
  }

  json to_json() const {
    const auto choices = static_cast<double>(choices_);
    return {{"different", different_},
            {"worse", worse_},
            {"worse_percent", 100 * static_cast<double>(worse_) / choices},
            {"aggregate_lost_percent", 100 * aggregate_ / choices},
            {"weakest_lost", weakest_ / choices},
            {"nearness_lost", nearness_ / choices},
            {"left_lost", left_ / choices}};
  }

 private:
  std::int64_t choices_ = 0, different_ = 0, worse_ = 0;
  double aggregate_ = 0, weakest_ = 0, nearness_ = 0, left_ = 0;
};

Set chosen_by_library(const placement::Wiring& wiring, Set free, int count) {
  placement::DeviceCriteria criteria;
  criteria.claims = {{count, free}};
  criteria.free = free;
  return placement::choose(wiring, criteria).value_or(0);
}

class Regret {
 public:
  Regret(const Topology& topology, std::uint64_t seed)
      : topology_(topology), wiring_(topology.wiring()), random_(seed) {}

  json measure() {
    if (topology_.gpus() <= kMostExhaustive) {
      std::vector<int> all;
      for (int i = 0; i < topology_.gpus(); ++i) all.push_back(i);
      measure(all, 0);
    } else {
      for (int i = 0; i < kSampledMachines; ++i) measure(some_gpus(), kSampledSets);
    }
    return {{"topology", topology_.name},
            {"gpus", topology_.gpus()},
            {"exhaustive", topology_.gpus() <= kMostExhaustive},
            {"free_sets", free_sets_},
            {"choices", choices_},
            {"drover", library_.to_json()},
            {"lowest", lowest_.to_json()},
            {"random", chance_.to_json()}};
  }

 private:
  std::vector<int> some_gpus() {
    std::vector<int> gpus;
    const Set all = topology_.gpus() == 64 ? ~Set{0} : (Set{1} << topology_.gpus()) - 1;
    for (Set set = any_set(all, kMostExhaustive, random_); set != 0; set &= set - 1)
      gpus.push_back(std::countr_zero(set));
    return gpus;
  }

  /// All free sets among these GPUs, or so many random ones.
  void measure(const std::vector<int>& gpus, int samples) {
    Topology part;
    for (const int a : gpus) {
      auto& row = part.links.emplace_back();
      for (const int b : gpus)
        row.push_back(topology_.links[static_cast<std::size_t>(a)][static_cast<std::size_t>(b)]);
      part.numa.push_back(topology_.numa[static_cast<std::size_t>(a)]);
    }
    const BruteForce brute_force(part);
    const Set all = (Set{1} << gpus.size()) - 1;
    const auto spread = [&](Set set) {  // from the part to the machine
      Set wide = 0;
      for (; set != 0; set &= set - 1)
        wide |= Set{1} << gpus[static_cast<std::size_t>(std::countr_zero(set))];
      return wide;
    };
    const auto measure_one = [&](Set free) {
      ++free_sets_;
      const auto best = brute_force.best(free);
      for (std::size_t count = 1; count < best.size(); ++count)
        compare(spread(free), static_cast<int>(count), spread(best[count]));
    };
    if (samples == 0)
      for (Set free = 1; free <= all; ++free) measure_one(free);
    for (int i = 0; i < samples; ++i) measure_one(1 + random_() % all);
  }

  void compare(Set free, int count, Set best) {
    ++choices_;
    const auto of = interconnect_of(topology_, free, best);
    const auto add = [&](Losses& losses, Set set) {
      losses.add(of, set == best ? of : interconnect_of(topology_, free, set), set == best);
    };
    add(library_, chosen_by_library(wiring_, free, count));
    add(lowest_, lowest_indices(free, count));
    add(chance_, any_set(free, count, random_));
  }

  const Topology& topology_;
  placement::Wiring wiring_;
  std::mt19937_64 random_;
  std::int64_t free_sets_ = 0, choices_ = 0;
  Losses library_, lowest_, chance_;
};

}  // namespace

json measure_regret(const std::vector<Topology>& topologies, std::uint64_t seed) {
  json measured = json::array();
  for (const auto& topology : topologies) measured.push_back(Regret(topology, seed).measure());
  return measured;
}

void print_regret(const json& measured) {
  fmt::print(
      "Regret against the best of all sets, over every free set and every number of GPUs.\n"
      "worse: choices that are not the best; NVLinks lost: of the best sum, on average; weakest pair, PCIe "
      "and\n"
      "left: what is lost there, on average, counted where all before it is met.\n\n"
      "{:<26} {:>4} {:>9} {:>8}  {:<7} {:>8} {:>8} {:>8} {:>8} {:>8}\n",
      "topology", "GPUs", "free sets", "choices", "way", "worse", "NVLinks", "weakest", "PCIe", "left");
  for (const auto& row : measured) {
    auto head =
        fmt::format("{:<26} {:>4} {:>9} {:>8}", row["topology"].get<std::string>(), row["gpus"].get<int>(),
                    fmt::format("{}{}", row["exhaustive"] ? "" : "~", row["free_sets"].get<int>()),
                    row["choices"].get<int>());
    for (const auto* way : {"drover", "lowest", "random"}) {
      const auto& lost = row[way];
      fmt::print("{}  {:<7} {:>7.2f}% {:>7.2f}% {:>8.3f} {:>8.3f} {:>8.3f}\n", head, way,
                 lost["worse_percent"].get<double>(), lost["aggregate_lost_percent"].get<double>(),
                 lost["weakest_lost"].get<double>(), lost["nearness_lost"].get<double>(),
                 lost["left_lost"].get<double>());
      head = std::string(head.size(), ' ');
    }
  }
  fmt::print("\n{} of Drover's choices were not the best set itself, the order among equals included.\n\n",
             count_mistakes(measured));
}

std::int64_t count_mistakes(const json& measured) {
  std::int64_t mistakes = 0;
  for (const auto& row : measured) mistakes += row["drover"]["different"].get<std::int64_t>();
  return mistakes;
}

}  // namespace drover::bench
