#include "node.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <array>

#include "gpu/attributes.h"

namespace drover {
namespace {

void add(Attributes& attributes, const std::string& name, std::vector<std::string> values) {
  std::erase(values, "");
  if (!values.empty()) attributes.try_emplace(name, std::move(values));
}

}  // namespace

std::string host_name() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

void log_inventory(const gpu::Inventory& inventory) {
  if (inventory.simulated) spdlog::info("GPUs are simulated: profile '{}'", inventory.simulation);
  for (const auto& problem : inventory.problems) spdlog::warn("{}", to_string(problem));
  for (const auto& device : inventory.devices) {
    spdlog::info("GPU {}: {} {}", device.index, device.model, device.uuid);
    for (const auto& problem : device.problems) spdlog::warn("GPU {}: {}", device.index, to_string(problem));
  }
}

std::string first_steps(const gpu::Inventory& inventory, const std::string& socket) {
  const auto program = socket.empty() ? "drover" : fmt::format("drover --socket {}", socket);
  const auto count = inventory.devices.size();
  if (count == 0)
    return fmt::format(
        "Ready, without GPUs: '{} doctor' says what is missing, and 'drover serve --simulate dgx-a100' "
        "simulates some",
        program);
  return fmt::format("Ready, with {} {}GPU{}: '{} gpus' lists them, '{} run --gpus 1 -- COMMAND' runs on one",
                     count, inventory.simulated ? "simulated " : "", count == 1 ? "" : "s", program, program);
}

Attributes host_attributes(const gpu::CpuFeatures& cpu) {
  Attributes attributes;
  utsname kernel{};
  if (::uname(&kernel) == 0) add(attributes, "cpu_arch", {static_cast<const char*>(kernel.machine)});
  auto names = gpu::cpu_names(cpu);
  for (const char* feature : {"avx", "avx2", "avx512f"})
    if (cpu.contains(feature)) names.emplace_back(feature);
  add(attributes, "cpu", std::move(names));
  return attributes;
}

placement::Node describe_node(std::string name, const gpu::HostFacts& facts, gpu::Sight sight,
                              const Attributes& given) {
  placement::Node node;
  node.name = std::move(name);
  node.numa = facts.numa;
  node.nics = facts.nics;
  node.cpu = facts.cpu;
  node.milli_cpus = facts.cpus * 1000LL;
  node.memory_bytes = facts.memory_bytes;
  node.attributes = given;
  for (auto& [attribute, values] : gpu::attributes_of(sight.inventory))
    add(node.attributes, attribute, std::move(values));
  node.inventory = std::move(sight.inventory);
  node.mig = std::move(sight.mig);
  return node;
}

}  // namespace drover
