#include "workload.h"

#include <fmt/format.h>

#include <array>

namespace drover::bench {
namespace {

using placement::Node;
using placement::Request;

constexpr std::uint64_t kGiB = 1ULL << 30;
constexpr int kGpus = 8;

struct Machine {
  const char* model;
  std::uint64_t memory;
  gpu::ComputeCapability capability;
  enum { kPcie, kCubeMesh, kSwitched } wiring;
};
constexpr std::array<Machine, 4> kMachines{
    {{"Tesla T4", 16 * kGiB, {7, 5}, Machine::kPcie},
     {"Tesla P100-PCIE-16GB", 16 * kGiB, {6, 0}, Machine::kPcie},
     {"Tesla V100-SXM2-32GB", 32 * kGiB, {7, 0}, Machine::kCubeMesh},
     {"NVIDIA A100-SXM4-80GB", 80 * kGiB, {8, 0}, Machine::kSwitched}}};

/// NVLinks of a DGX-1 with V100s.
constexpr int kCube[kGpus][kGpus] = {
    {0, 1, 1, 2, 2, 0, 0, 0}, {1, 0, 2, 1, 0, 2, 0, 0}, {1, 2, 0, 2, 0, 0, 1, 0}, {2, 1, 2, 0, 0, 0, 0, 1},
    {2, 0, 0, 0, 0, 1, 1, 2}, {0, 2, 0, 0, 1, 0, 2, 1}, {0, 0, 1, 0, 1, 2, 0, 2}, {0, 0, 0, 1, 2, 1, 2, 0}};

gpu::Link link_of(const Machine& machine, int a, int b) {
  if (a == b) return {0, gpu::PcieLevel::kSameDevice};
  const auto pcie = a / 2 == b / 2   ? gpu::PcieLevel::kSwitch
                    : a / 4 == b / 4 ? gpu::PcieLevel::kSameNuma
                                     : gpu::PcieLevel::kAcross;
  const auto nvlinks = machine.wiring == Machine::kPcie       ? 0
                       : machine.wiring == Machine::kSwitched ? 12
                                                              : kCube[a][b];
  return {nvlinks, pcie};
}

void add_gpus(Node& node, const Machine& machine) {
  node.inventory.driver_version = "535.104.05";
  for (int i = 0; i < kGpus; ++i) {
    gpu::Device device{
        .uuid = fmt::format("GPU-{}-{:032x}", node.name, i), .index = i, .model = machine.model};
    device.memory_bytes = machine.memory;
    device.compute_capability = machine.capability;
    device.numa_node = i / 4;
    node.inventory.devices.push_back(device);
    auto& row = node.inventory.links.emplace_back();
    for (int j = 0; j < kGpus; ++j) row.push_back(link_of(machine, i, j));
  }
}

}  // namespace

std::vector<Node> made_up_nodes(int count) {
  std::vector<Node> nodes;
  for (int i = 0; i < count; ++i) {
    Node node{.name = fmt::format("node-{}", i), .milli_cpus = 128'000, .memory_bytes = 1024 * kGiB};
    for (int numa = 0; numa < 2; ++numa) {
      auto& cpus = node.numa.emplace_back(gpu::NumaNode{numa, {}}).cpus;
      for (int cpu = 0; cpu < 64; ++cpu) cpus.push_back(numa * 64 + cpu);
    }
    if (i % 10 != 9) add_gpus(node, kMachines[static_cast<std::size_t>(i) % kMachines.size()]);
    nodes.push_back(std::move(node));
  }
  return nodes;
}

std::size_t RequestStream::pick(std::size_t bound) {
  return random_() % bound;
}

Request RequestStream::next() {
  Request request;
  const auto kind = pick(80);
  int gpus = 0;
  if (kind >= 10) gpus = 1;
  if (kind >= 64) gpus = 2;
  if (kind >= 71) gpus = 4;
  if (kind >= 76) gpus = 8;
  request.milli_cpus =
      500 * static_cast<std::int64_t>(1 + pick(static_cast<std::size_t>(16 * std::max(1, gpus))));
  request.memory_bytes = kGiB * (1 + pick(static_cast<std::size_t>(64 * std::max(1, gpus))));
  if (gpus == 0) return request;
  request.gpus.push_back({gpus, {}});
  if (kind < 40) {
    constexpr std::array kShares{50, 100, 125, 200, 250, 333, 400, 500, 600, 750};
    request.share.milli = kShares[pick(kShares.size())];
  }
  auto& filter = request.gpus.front().filter;
  if (one_in(3)) filter.models = {std::array{"T4", "P100", "V100", "A100"}[pick(4)]};
  if (gpus > 1 && filter.models.empty() && one_in(4)) request.interconnect.min_nvlinks = 1;
  return request;
}

}  // namespace drover::bench
