#include "gpu/host.h"

#include <fmt/format.h>
#include <hwloc.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <memory>

#include "gpu/nics.h"
#include "sim/profile.h"

namespace drover::gpu {
namespace {

using Topology =
    std::unique_ptr<hwloc_topology, decltype([](hwloc_topology* t) { ::hwloc_topology_destroy(t); })>;

std::vector<int> cpus_of(hwloc_const_cpuset_t set) {
  std::vector<int> cpus;
  for (int cpu = ::hwloc_bitmap_first(set); cpu >= 0; cpu = ::hwloc_bitmap_next(set, cpu))
    cpus.push_back(cpu);
  return cpus;
}

Result<Topology> load_topology() {
  hwloc_topology_t raw = nullptr;
  if (::hwloc_topology_init(&raw) != 0) return fail_errno("Failed to look at the machine's topology", errno);
  Topology topology(raw);
  if (::hwloc_topology_load(raw) != 0) return fail_errno("Failed to look at the machine's topology", errno);
  return topology;
}

Result<CpuFeatures> cpu_of(const sim::Profile& machine) {
  if (machine.host.cpu.empty()) return this_cpu();
  CpuFeatures features;
  for (const auto& name : machine.host.cpu) {
    const auto cpu = parse_cpu(name);
    if (!cpu) return Failure(context(cpu.error(), fmt::format("Profile '{}': /host/cpu", machine.name)));
    features.insert(cpu->features.begin(), cpu->features.end());
  }
  return features;
}

}  // namespace

Result<HostFacts> host_facts(const std::string& folder) {
  DROVER_TRY(const auto topology, load_topology());
  HostFacts facts;
  const auto root = ::hwloc_get_root_obj(topology.get());
  facts.cpus = std::max(1, ::hwloc_bitmap_weight(root->cpuset));
  facts.memory_bytes = root->total_memory;
  for (hwloc_obj_t node = nullptr;
       (node = ::hwloc_get_next_obj_by_type(topology.get(), HWLOC_OBJ_NUMANODE, node)) != nullptr;)
    facts.numa.push_back({static_cast<int>(node->os_index), cpus_of(node->cpuset)});
  std::ranges::sort(facts.numa, {}, &NumaNode::id);
  struct statvfs disk{};
  if (::statvfs(folder.c_str(), &disk) != 0)
    return fail_errno(fmt::format("Failed to look at the file system of '{}'", folder), errno);
  facts.disk_bytes = static_cast<std::uint64_t>(disk.f_blocks) * disk.f_frsize;
  facts.nics = find_nics();
  facts.cpu = this_cpu();
  return facts;
}

Result<HostFacts> simulated_host_facts(const std::string& profile) {
  constexpr std::uint64_t kMebibyte = 1ULL << 20;
  DROVER_TRY(const auto machine, sim::load_profile(profile));
  HostFacts facts;
  facts.cpus = machine.host.cpus;
  facts.memory_bytes = machine.host.memory_mib * kMebibyte;
  facts.disk_bytes = machine.host.disk_mib * kMebibyte;
  for (const auto& node : machine.host.numa) facts.numa.push_back({node.id, node.cpus});
  for (const auto& nic : machine.host.nics) facts.nics.push_back({nic.name, nic.numa});
  std::ranges::sort(facts.nics, {}, &Nic::name);
  DROVER_TRY(facts.cpu, cpu_of(machine));
  return facts;
}

Result<MachineFacts> simulated_machine(const std::string& profile) {
  DROVER_TRY(const auto machine, sim::load_profile(profile));
  MachineFacts facts;
  facts.driver = machine.driver_version;
  facts.cuda = fmt::format("{}.{}", machine.cuda_major, machine.cuda_minor);
  DROVER_TRY(facts.cpu, cpu_of(machine));
  for (const auto& gpu : machine.gpus) {
    Device device;
    device.uuid = gpu.uuid;
    device.index = static_cast<int>(facts.devices.size());
    device.model = gpu.model.name;
    device.brand = gpu.model.brand;
    device.compute_capability = ComputeCapability{gpu.model.compute_major, gpu.model.compute_minor};
    facts.devices.push_back(std::move(device));
  }
  return facts;
}

}  // namespace drover::gpu
