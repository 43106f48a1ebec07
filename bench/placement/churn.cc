#include "churn.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <variant>

#include "cpu_time.h"
#include "linear_scan.h"
#include "placement/cluster.h"
#include "workload.h"

namespace drover::bench {
namespace {

using nlohmann::json;
using placement::Cluster;
using placement::Decision;
using placement::NodePolicy;
using placement::Request;

constexpr double kLoad = 0.85;  ///< of all GPUs is held
constexpr int kPeerDecisions = 200;

struct Running {
  std::string id;
  Request request;
  Decision decision;
  std::int64_t milli = 0;
};

/// A cluster that is kept at a load: what comes is placed, and as much of what runs ends.
class Churn {
 public:
  Churn(int nodes, NodePolicy policy, std::uint64_t seed)
      : stream_(seed), nodes_(made_up_nodes(nodes)), cluster_(policy) {
    for (const auto& node : nodes_) {
      cluster_.set_node(node);
      capacity_ += 1000 * static_cast<std::int64_t>(node.inventory.devices.size());
    }
  }

  void fill() {
    while (!loaded()) place_next();
  }

  void step() {
    place_next();
    while (loaded()) release_one();
  }

  json measure(int decisions) {
    places_.clear();
    refused_ = 0;
    const auto start = now_us();
    for (int i = 0; i < decisions; ++i) step();
    const auto seconds = (now_us() - start) / 1e6;
    return {{"nodes", nodes_.size()},
            {"decisions_per_second", decisions / seconds},
            {"median_us", percentile(places_, 0.5)},
            {"p99_us", percentile(places_, 0.99)},
            {"max_us", percentile(places_, 1)},
            {"refused", static_cast<double>(refused_) / decisions}};
  }

  /// Median microseconds of a peer that looks at every node, and of the cluster, for the same requests.
  std::pair<double, double> compare() {
    LinearScan peer(nodes_);
    for (const auto& running : running_) peer.allocate(running.request, running.decision);
    std::vector<double> peer_times;
    std::vector<double> own_times;
    for (int i = 0; i < kPeerDecisions; ++i) {
      const auto request = stream_.next();
      const auto start = now_us();
      const auto slot = peer.place(request);
      const auto middle = now_us();
      const auto decision = cluster_.try_place(request);
      own_times.push_back(now_us() - middle);
      peer_times.push_back(middle - start);
      if (slot.has_value() != decision.has_value() || (slot && nodes_[*slot].name != decision->node))
        std::abort();
      if (!decision) continue;
      if (!cluster_.allocate(fmt::format("task-{}", count_++), request, *decision)) std::abort();
      peer.allocate(request, *decision);
    }
    return {percentile(peer_times, 0.5), percentile(own_times, 0.5)};
  }

  /// Median microseconds of a thought experiment: a copy of the cluster, and a decision that is taken on it.
  double copy_and_place() {
    std::vector<double> times;
    for (int i = 0; i < kPeerDecisions; ++i) {
      const auto request = stream_.next();
      const auto start = now_us();
      auto copy = cluster_;
      if (const auto decision = copy.try_place(request))
        if (!copy.allocate("thought", request, *decision)) std::abort();
      times.push_back(now_us() - start);
    }
    return percentile(times, 0.5);
  }

 private:
  /// One decision; places_ and busy_ grow by what it took.
  void place_next() {
    const auto request = stream_.next();
    auto id = fmt::format("task-{}", count_++);
    const auto start = now_us();
    auto answer = cluster_.place(request);
    places_.push_back(now_us() - start);
    auto* decision = std::get_if<Decision>(&answer);
    if (decision == nullptr) {
      ++refused_;
      return;
    }
    if (!cluster_.allocate(id, request, *decision)) std::abort();
    start_running(std::move(id), request, *std::move(decision));
  }

  bool loaded() const { return static_cast<double>(held_) >= kLoad * static_cast<double>(capacity_); }

  void start_running(std::string id, const Request& request, Decision decision) {
    std::int64_t milli = 0;
    for (const auto& grant : decision.gpus) milli += grant.milli;
    held_ += milli;
    running_.push_back({std::move(id), request, std::move(decision), milli});
  }

  void release_one() {
    std::swap(running_[stream_.pick(running_.size())], running_.back());
    cluster_.release(running_.back().id);
    held_ -= running_.back().milli;
    running_.pop_back();
  }

  RequestStream stream_;
  std::vector<placement::Node> nodes_;
  Cluster cluster_;
  std::vector<Running> running_;
  std::int64_t capacity_ = 0;
  std::int64_t held_ = 0;
  std::uint64_t count_ = 0;
  std::vector<double> places_;
  std::uint64_t refused_ = 0;
};

}  // namespace

json measure_churn(const std::vector<int>& sizes, const std::string& policy, int decisions,
                   std::uint64_t seed) {
  auto rows = json::array();
  const auto node_policy = placement::node_policy(policy).value();
  for (const auto size : sizes) {
    Churn churn(size, node_policy, seed);
    churn.fill();
    for (int i = 0; i < decisions / 10; ++i) churn.step();
    auto row = churn.measure(decisions);
    row["policy"] = policy;
    row["linear_scan_us"] = nullptr;
    row["times_faster"] = nullptr;
    if (node_policy == NodePolicy::kPack) {
      const auto [peer, own] = churn.compare();
      row["linear_scan_us"] = peer;
      row["times_faster"] = peer / own;
    }
    row["copy_us"] = churn.copy_and_place();
    rows.push_back(std::move(row));
  }
  return rows;
}

void print_churn(const json& measured) {
  if (measured.empty()) return;
  fmt::print("\nA cluster under churn: 8 GPUs a node, {:.0f}% held, all shapes of requests, policy {}\n",
             kLoad * 100, measured.front()["policy"].get<std::string>());
  fmt::print("(time of one core; decisions/s with taking and giving back)\n");
  fmt::print("{:>8} {:>12} {:>10} {:>10} {:>10} {:>9} {:>9} {:>16} {:>7}\n", "nodes", "decisions/s",
             "median us", "p99 us", "max us", "refused", "copy us", "every node us", "ratio");
  for (const auto& row : measured) {
    fmt::print("{:>8} {:>12.0f} {:>10.1f} {:>10.1f} {:>10.1f} {:>8.1f}% {:>9.1f}", row["nodes"].get<int>(),
               row["decisions_per_second"].get<double>(), row["median_us"].get<double>(),
               row["p99_us"].get<double>(), row["max_us"].get<double>(), row["refused"].get<double>() * 100,
               row["copy_us"].get<double>());
    if (row["times_faster"].is_null())
      fmt::print("\n");
    else
      fmt::print(" {:>16.1f} {:>7.1f}\n", row["linear_scan_us"].get<double>(),
                 row["times_faster"].get<double>());
  }
}

}  // namespace drover::bench
