#include "latency.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <nlohmann/json.hpp>

#include "baselines.h"
#include "placement/device_choice.h"

namespace drover::bench {
namespace {

using nlohmann::json;
using placement::DeviceCriteria;

constexpr int kFloorSamples = 3;       // trying all sets takes milliseconds
constexpr int kMostGpusToTryAll = 16;  // and days, on larger machines
constexpr double kMostTime = 200'000;  // microseconds for one row and column; one choice is measured anyhow

template <typename Work>
double microseconds(const Work& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
}

double percentile(const std::vector<double>& sorted, double part) {
  return sorted[static_cast<std::size_t>(part * static_cast<double>(sorted.size() - 1))];
}

class Latency {
 public:
  Latency(const Topology& topology, int samples, std::uint64_t seed)
      : topology_(topology), wiring_(topology.wiring()), samples_(samples), random_(seed) {}

  json measure() {
    json counts = json::array();
    for (const int count : counts_of_interest()) {
      json row = {{"count", count},
                  {"all_free", time([&] { return any(count, all()); })},
                  {"random_free", time([&] { return any(count, some_free(count)); })},
                  {"wishes", time([&] { return with_preferences(count); })}};
      if (topology_.gpus() <= kMostGpusToTryAll) add_floor(row, count);
      counts.push_back(std::move(row));
    }
    return {{"topology", topology_.name},
            {"gpus", topology_.gpus()},
            {"wiring_us", microseconds([&] { (void)topology_.wiring(); })},
            {"counts", std::move(counts)}};
  }

 private:
  /// Every number of up to 16 GPUs; of a larger machine some.
  std::vector<int> counts_of_interest() const {
    std::vector<int> counts;
    for (int count = 1; count <= topology_.gpus(); ++count)
      if (topology_.gpus() <= kMostGpusToTryAll || std::has_single_bit(static_cast<unsigned>(count)))
        counts.push_back(count);
    return counts;
  }

  template <typename MakeCriteria>
  json time(const MakeCriteria& make_criteria) {
    std::vector<double> times;
    double sum = 0;
    for (int i = 0; i < samples_ && sum < kMostTime; ++i) {
      const DeviceCriteria criteria = make_criteria();
      times.push_back(microseconds([&] { sink_ = placement::choose(wiring_, criteria).value_or(0); }));
      sum += times.back();
    }
    std::ranges::sort(times);
    return {{"min_us", times.front()},
            {"median_us", percentile(times, 0.5)},
            {"p99_us", percentile(times, 0.99)},
            {"max_us", times.back()}};
  }

  void add_floor(json& row, int count) {
    std::vector<double> times;
    for (int i = 0; i < kFloorSamples; ++i)
      times.push_back(microseconds([&] { sink_ = try_all(topology_, all(), count); }));
    std::ranges::sort(times);
    row["try_all_us"] = percentile(times, 0.5);
    row["try_all_ratio"] = percentile(times, 0.5) / row["all_free"]["median_us"].get<double>();
  }

  Set all() const { return topology_.gpus() == 64 ? ~Set{0} : (Set{1} << topology_.gpus()) - 1; }

  Set some_free(int at_least) {
    const auto sizes = static_cast<unsigned>(topology_.gpus() - at_least + 1);
    return any_set(all(), at_least + static_cast<int>(random_() % sizes), random_);
  }

  static DeviceCriteria any(int count, Set free) {
    DeviceCriteria criteria;
    criteria.claims = {{count, free}};
    criteria.free = free;
    return criteria;
  }

  /// Two claims that overlap, NVLinks or one host bridge between all, CPUs and NICs near.
  DeviceCriteria with_preferences(int count) {
    auto criteria = any(count, some_free(count));
    const auto second = static_cast<int>(random_() % static_cast<unsigned>(count));
    if (second > 0) criteria.claims = {{count - second, criteria.free & random_()}, {second, criteria.free}};
    criteria.minimum = {static_cast<int>(random_() % 2), gpu::PcieLevel::kHostBridge};
    criteria.cpu_affinity = placement::Preference::kPrefer;
    for (unsigned numa = 1; numa < criteria.cpus_suffice.size(); ++numa)
      criteria.cpus_suffice[numa] = std::popcount(numa) >= 2;
    criteria.preferred = random_();
    return criteria;
  }

  const Topology& topology_;
  placement::Wiring wiring_;
  int samples_;
  std::mt19937_64 random_;
  volatile Set sink_ = 0;  // so that no choice is optimised away
};

}  // namespace

json measure_latency(const std::vector<Topology>& topologies, int samples, std::uint64_t seed) {
  json measured = json::array();
  for (const auto& topology : topologies) measured.push_back(Latency(topology, samples, seed).measure());
  return measured;
}

void print_latency(const json& measured) {
  fmt::print(
      "Microseconds of one choice: minimum, median, 99th percentile, maximum.\n"
      "try all: how many times longer it takes to try every set, with all GPUs free.\n");
  for (const auto& machine : measured) {
    fmt::print("\n{}, {} GPUs; its tables take {:.1f} ms, once for all machines like it\n{:>4}",
               machine["topology"].get<std::string>(), machine["gpus"].get<int>(),
               machine["wiring_us"].get<double>() / 1000, "GPUs");
    for (const auto* title : {"all free", "random free", "wishes"}) fmt::print("  {:>31}", title);
    fmt::print("  {:>8}\n", "try all");
    for (const auto& row : machine["counts"]) {
      fmt::print("{:>4}", row["count"].get<int>());
      for (const auto* way : {"all_free", "random_free", "wishes"}) {
        fmt::print(" ");
        for (const auto* of : {"min_us", "median_us", "p99_us", "max_us"})
          fmt::print(" {:>7.2f}", row[way][of].get<double>());
      }
      if (row.contains("try_all_ratio")) fmt::print("  {:>6.0f} ×", row["try_all_ratio"].get<double>());
      fmt::print("\n");
    }
  }
  fmt::print("\n");
}

}  // namespace drover::bench
