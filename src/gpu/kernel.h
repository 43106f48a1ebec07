#pragma once

// What the kernel says of PCI functions and NVIDIA GPUs, read from sysfs and procfs below a root folder ("/",
// or a tree that a test built). Fills what NVML does not say. Blocking file reads; thread safe; a fact that
// cannot be read is absent, never an error.

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "gpu/device.h"

namespace drover::gpu {

/// "0-3,8": how the kernel and people write CPU sets. Refuses CPU numbers of 65536 and above.
Result<std::vector<int>> parse_cpu_list(std::string_view text);

class Kernel {
 public:
  explicit Kernel(std::string root = "/") : root_(std::move(root)) {}

  /// PCI display controllers of NVIDIA, by address.
  std::vector<PciAddress> nvidia_gpus() const;
  /// N of /dev/nvidiaN, as the driver's own procfs files tell.
  std::optional<int> minor(const PciAddress& address) const;
  std::optional<int> numa_node(const PciAddress& address) const;
  /// CPUs near the function, ascending; empty when unknown.
  std::vector<int> cpus(const PciAddress& address) const;
  /// How two PCI functions are joined, from their places in the device tree. Never kSameBoard.
  PcieLevel level(const PciAddress& a, const PciAddress& b) const;
  /// "pci0000:80": the host bridge that its tree begins with.
  std::optional<std::string> pcie_root(const PciAddress& address) const;

 private:
  std::optional<std::string> attribute(const PciAddress& address, const std::string& name) const;
  std::vector<std::string> ancestry(const PciAddress& address) const;

  std::string root_;
};

}  // namespace drover::gpu
