#include "gpu/nics.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/files.h"
#include "gpu/kernel.h"

namespace drover::gpu {
namespace {

/// The PCI function that a device is, or that it is the virtio device of.
std::optional<PciAddress> function_of(const std::string& device) {
  std::error_code error;
  const auto place = std::filesystem::canonical(device, error);
  if (error) return std::nullopt;
  const auto name = place.filename().string();
  const auto function = name.starts_with("virtio") ? place.parent_path().filename().string() : name;
  const auto address = parse_pci_address(function);
  return address ? std::optional(*address) : std::nullopt;
}

}  // namespace

std::vector<Nic> find_nics(const std::string& root) {
  const Kernel kernel(root);
  std::vector<Nic> nics;
  for (const auto* kind : {"infiniband", "net"}) {
    const auto folder = fmt::format("{}/sys/class/{}", root, kind);
    const auto listed = Directory::open(folder).and_then([](const Directory& found) { return found.list(); });
    for (const auto& name : listed.value_or(std::vector<std::string>{}))
      if (const auto function = function_of(fmt::format("{}/{}/device", folder, name)))
        nics.push_back({name, kernel.numa_node(*function)});
  }
  std::ranges::sort(nics, {}, &Nic::name);
  return nics;
}

}  // namespace drover::gpu
