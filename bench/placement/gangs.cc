#include "gangs.h"

#include <fmt/format.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

#include "cpu_time.h"
#include "placement/gang.h"
#include "workload.h"

namespace drover::bench {
namespace {

using nlohmann::json;
using placement::Arrangement;
using placement::Cluster;
using placement::Gang;
using placement::Request;

constexpr std::size_t kMembers = 512;
constexpr int kSamples = 9;

Request member(int gpus, std::int64_t cpus) {
  Request request;
  request.gpus.push_back({gpus, {}});
  request.milli_cpus = 1000 * cpus;
  return request;
}

/// So many nodes with 8 GPUs each.
Cluster cluster_of(std::size_t nodes) {
  Cluster cluster;
  std::size_t added = 0;
  for (auto& node : made_up_nodes(static_cast<int>(nodes * 2)))
    if (!node.inventory.devices.empty() && added++ < nodes) cluster.set_node(std::move(node));
  return cluster;
}

/// The same, half of it held.
Cluster busy_cluster_of(std::size_t nodes) {
  auto cluster = cluster_of(nodes);
  RequestStream stream(1);
  int count = 0;
  for (std::size_t held = 0; held < nodes * 8 * 1000 / 2;) {
    const auto request = stream.next();
    if (const auto decision = cluster.try_place(request)) {
      if (!cluster.allocate(fmt::format("task-{}", count++), request, *decision)) std::abort();
      for (const auto& grant : decision->gpus) held += static_cast<std::size_t>(grant.milli);
    }
  }
  return cluster;
}

struct Kind {
  std::string name;
  std::size_t nodes = kMembers;
  std::vector<Request> members;
};

std::vector<Kind> kinds() {
  const auto whole_node = member(8, 96);
  const std::vector<Request> alike(kMembers, whole_node);
  std::vector<Kind> kinds{{"512 alike", kMembers, alike}};
  auto& one_less = kinds.emplace_back("511 and 1 smaller", kMembers, alike);
  one_less.members.front() = member(2, 8);
  one_less.members.front().interconnect.min_nvlinks = 1;
  auto& different = kinds.emplace_back("512 different", kMembers, alike);
  for (std::size_t i = 0; i < kMembers; ++i) different.members[i].milli_cpus -= static_cast<std::int64_t>(i);
  kinds.push_back({"512 alike on 10,000 nodes", 10'000, std::vector<Request>(kMembers, member(4, 8))});
  auto& many = kinds.emplace_back("511 and 1 on 10,000 nodes", 10'000, kinds.back().members);
  many.members.front() = member(8, 96);
  kinds.push_back({"513 alike, 1 too many", kMembers, std::vector<Request>(kMembers + 1, whole_node)});
  auto& no_room = kinds.emplace_back("511 fit, 1 does not", kMembers, alike);
  no_room.members.push_back(member(4, 8));
  // By number there is room for all: 16 GPUs are left for 15.
  auto& hard = kinds.emplace_back("510 fit, 1 of 5 does not", kMembers, alike);
  hard.members.resize(kMembers - 2);
  hard.members.insert(hard.members.end(), 5, member(3, 8));
  return kinds;
}

}  // namespace

json measure_gangs() {
  auto rows = json::array();
  const auto idle = cluster_of(kMembers);
  const auto busy = busy_cluster_of(10'000);
  for (const auto& kind : kinds())
    for (const auto& [name, arrangement] : {std::pair{"pack", Arrangement::kPack},
                                            {"spread", Arrangement::kSpread},
                                            {"any", Arrangement::kAny}}) {
      const Gang gang{kind.members, arrangement};
      std::vector<double> times;
      bool placed = false;
      for (int i = 0; i < kSamples; ++i) {
        auto cluster = kind.nodes == kMembers ? idle : busy;
        const auto start = now_us();
        placed = try_place(cluster, gang).has_value();
        times.push_back((now_us() - start) / 1000);
      }
      rows.push_back({{"gang", kind.name},
                      {"nodes", kind.nodes},
                      {"arrangement", name},
                      {"placed", placed},
                      {"median_ms", percentile(times, 0.5)},
                      {"max_ms", percentile(times, 1)}});
    }
  return rows;
}

void print_gangs(const json& measured) {
  fmt::print(
      "\nGangs of about 512 members with 8 GPUs each on 512 idle nodes, and with 4 on 10,000 busy ones\n");
  fmt::print("{:>28} {:>12} {:>8} {:>10} {:>10}\n", "gang", "arrangement", "placed", "median ms", "max ms");
  for (const auto& row : measured)
    fmt::print("{:>28} {:>12} {:>8} {:>10.2f} {:>10.2f}\n", row["gang"].get<std::string>(),
               row["arrangement"].get<std::string>(), row["placed"].get<bool>() ? "yes" : "no",
               row["median_ms"].get<double>(), row["max_ms"].get<double>());
}

}  // namespace drover::bench
