#include "node.h"

#include <sys/utsname.h>

#include <set>

#include "base/files.h"
#include "gpu/cpu.h"

namespace drover {
namespace {

constexpr std::uint64_t kMostCpuInfo = 64ULL << 20;

void add(Attributes& attributes, const std::string& name, std::vector<std::string> values) {
  std::erase(values, "");
  if (!values.empty()) attributes.try_emplace(name, std::move(values));
}

}  // namespace

Attributes host_attributes() {
  Attributes attributes;
  utsname kernel{};
  if (::uname(&kernel) == 0) add(attributes, "cpu_arch", {static_cast<const char*>(kernel.machine)});
  if (const auto cpuinfo = read_file("/proc/cpuinfo", kMostCpuInfo))
    add(attributes, "cpu", gpu::cpu_features(*cpuinfo));
  return attributes;
}

placement::Node describe_node(std::string name, const gpu::HostFacts& facts, gpu::Inventory inventory,
                              const Attributes& given) {
  placement::Node node;
  node.name = std::move(name);
  node.numa = facts.numa;
  node.nics = facts.nics;
  node.milli_cpus = facts.cpus * 1000LL;
  node.memory_bytes = facts.memory_bytes;
  node.attributes = given;
  std::set<std::string> models;
  for (const auto& device : inventory.devices) models.insert(device.model);
  add(node.attributes, "gpu_model", {models.begin(), models.end()});
  add(node.attributes, "driver", {inventory.driver_version});
  add(node.attributes, "cuda", {inventory.cuda_version});
  node.inventory = std::move(inventory);
  return node;
}

}  // namespace drover
