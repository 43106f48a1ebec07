#include "placement/testing/random.h"

#include <fmt/format.h>

#include "placement/testing/clusters.h"

namespace drover::placement::testing {
namespace {

const std::array<std::string, 3> kModels{"Tesla T4", "NVIDIA A100-SXM4-80GB", "Tesla V100-SXM2-16GB"};

}  // namespace

gpu::Device Random::device(const std::string& uuid, int numa_nodes) {
  gpu::Device device;
  device.uuid = uuid;
  device.model = of(kModels);
  if (!one_in(8)) device.memory_bytes = kGiB * static_cast<std::uint64_t>(of(std::array{8, 16, 17}));
  if (!one_in(8)) device.compute_capability = gpu::ComputeCapability{7, below(2) * 5};
  if (one_in(2)) device.ecc = one_in(2);
  if (numa_nodes > 0 && !one_in(8)) device.numa_node = below(numa_nodes);
  if (one_in(12)) device.unhealthy = "it fell off the bus";
  return device;
}

Node Random::node(const std::string& name) {
  Node node{.name = name,
            .milli_cpus = 1000 * (1 + below(8)),
            .memory_bytes = kGiB * static_cast<std::uint64_t>(1 + below(8))};
  const auto numa_nodes = below(3);
  for (int i = 0, cpu = 0; i < numa_nodes; ++i) {
    auto& numa = node.numa.emplace_back(gpu::NumaNode{i, {}});
    for (int count = below(5); count > 0; --count) numa.cpus.push_back(cpu++);
  }
  if (numa_nodes > 0 && one_in(2)) node.nics.push_back({"mlx5_0", below(numa_nodes)});
  node.inventory.driver_version = of(std::array<std::string, 3>{"535.104.05", "470.82.01", ""});
  const auto gpus = static_cast<std::size_t>(below(6));
  const bool alike = one_in(2);
  for (std::size_t i = 0; i < gpus; ++i) {
    auto next = device(fmt::format("{}-{}", name, i), numa_nodes);
    if (alike && i > 0) {
      next.model = node.inventory.devices[0].model;
      next.memory_bytes = node.inventory.devices[0].memory_bytes;
    }
    // On a machine with one NUMA node everything is near it, whether the kernel says so or not.
    if (numa_nodes == 1) next.numa_node = 0;
    node.inventory.devices.push_back(next);
  }
  node.inventory.links.assign(gpus, std::vector<gpu::Link>(gpus, {0, gpu::PcieLevel::kSameDevice}));
  for (std::size_t i = 0; i < gpus; ++i)
    for (std::size_t j = 0; j < i; ++j)
      node.inventory.links[i][j] =
          node.inventory.links[j][i] = {one_in(2) ? below(3) : 0, static_cast<gpu::PcieLevel>(1 + below(7))};
  if (one_in(2)) node.attributes["rack"] = {of(std::array<std::string, 2>{"r1", "r2"})};
  if (one_in(10)) node.cordoned = of(std::array<std::string, 2>{"maintenance", "full disk"});
  return node;
}

void Random::change(Node& node) {
  if (one_in(6)) {
    node = this->node(node.name);
  } else if (one_in(2) || node.inventory.devices.empty()) {
    node.cordoned = node.cordoned.empty() ? "maintenance" : "";
  } else {
    auto& unhealthy =
        node.inventory
            .devices[static_cast<std::size_t>(below(static_cast<int>(node.inventory.devices.size())))]
            .unhealthy;
    unhealthy = unhealthy.empty() ? "too hot" : "";
  }
}

Request Random::request() {
  Request request;
  request.milli_cpus = 500 * below(6);
  request.memory_bytes = kGiB / 2 * static_cast<std::uint64_t>(below(4));
  if (one_in(6)) request.attributes.push_back({"rack", {of(std::array<std::string, 3>{"r1", "r2", "r3"})}});
  if (one_in(8)) {
    Eligibility rules{{"is tainted", "has no room for its volume"}, {}};
    for (int node = 0; node < 4; ++node)
      if (one_in(3)) rules.refused[fmt::format("n{}", node)] = static_cast<std::size_t>(below(2));
    request.eligibility = std::make_shared<const Eligibility>(std::move(rules));
  }
  if (one_in(6)) return request;
  for (int claims = one_in(5) ? 2 : 1; claims > 0; --claims) {
    auto& claim = request.gpus.emplace_back(DeviceClaim{1 + below(one_in(2) ? 1 : 3), {}});
    if (one_in(4)) claim.filter.models = {of(std::array<std::string, 4>{"t4", "A100", "Tesla", "A10"})};
    if (one_in(8)) claim.filter.min_memory_bytes = kGiB * static_cast<std::uint64_t>(8 + below(10));
    if (one_in(8)) claim.filter.min_compute_capability = gpu::ComputeCapability{7, below(7)};
    if (one_in(10)) claim.filter.ecc = one_in(2);
    if (one_in(10)) claim.filter.min_driver = of(std::array<std::string, 2>{"470.82", "535.104.5"});
  }
  if (one_in(2)) request.share.milli = of(std::array{100, 250, 333, 500, 750, 999});
  if (one_in(6))
    request.share = {1000,
                     kGiB * static_cast<std::uint64_t>(1 + below(17)) - static_cast<std::uint64_t>(below(2))};
  request.cpu_affinity = static_cast<Preference>(below(3));
  request.nic = one_in(4) ? static_cast<Preference>(below(3)) : Preference::kNone;
  if (request.gpu_count() > 1) {
    if (one_in(3)) request.interconnect.min_nvlinks = below(3);
    if (one_in(4)) request.interconnect.max_pcie = static_cast<gpu::PcieLevel>(1 + below(7));
    request.different_models = one_in(5);
  }
  if (one_in(4)) {
    // Any two sets: three of which each two share devices would allow more than they say.
    const std::array<gpu::ComputeCapability, 3> known{gpu::ComputeCapability{7, 0}, {7, 5}, {}};
    for (int sets = 1 + below(2); sets > 0; --sets) {
      auto& set = request.capabilities.sets.emplace_back();
      for (const auto& capability : known)
        if (one_in(2)) set.push_back(capability);
    }
    request.capabilities.reason = "its program knows no others";
  }
  if (one_in(5)) request.group = fmt::format("group-{}", below(3));
  return request;
}

}  // namespace drover::placement::testing
