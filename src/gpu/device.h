#pragma once

// What a GPU is, as values: filled by discovery, read by everything above. A device is named by its UUID; an
// index is only ever shown to people. No I/O; copyable; thread safe as values are.

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace drover::gpu {

struct PciAddress {
  std::uint32_t domain = 0;
  std::uint32_t bus = 0;
  std::uint32_t device = 0;
  std::uint32_t function = 0;

  auto operator<=>(const PciAddress&) const = default;
};
/// "0000:82:00.0", as sysfs spells it.
std::string to_string(const PciAddress& address);
/// Takes 4- and 8-digit domains ("00000000:82:00.0" is NVML's spelling).
Result<PciAddress> parse_pci_address(const std::string& text);

struct ComputeCapability {
  int major = 0;
  int minor = 0;

  auto operator<=>(const ComputeCapability&) const = default;
};

/// How near two GPUs are over PCIe, nearest first. The words in brackets are those of `nvidia-smi topo -m`.
enum class PcieLevel {
  kSameDevice,  ///< [X] the GPU itself
  kSameBoard,   ///< [PIX] one board with two GPUs
  kSwitch,      ///< [PIX] at most one PCIe bridge between
  kSwitches,    ///< [PXB] several bridges, no host bridge
  kHostBridge,  ///< [PHB] through the host bridge of one CPU
  kSameNuma,    ///< [NODE] between host bridges of one NUMA node
  kAcross,      ///< [SYS] between NUMA nodes
  kUnknown,     ///< neither NVML nor the kernel says
};
/// "PIX", "PXB", "PHB", "NODE", "SYS", "X"; "?" for unknown.
std::string_view to_string(PcieLevel level);

struct Link {
  int nvlinks = 0;  ///< active NVLinks between the two (to the switches, where NVSwitches join them)
  PcieLevel pcie = PcieLevel::kUnknown;

  bool operator==(const Link&) const = default;
};

enum class MigMode { kUnsupported, kDisabled, kEnabled };

struct Device {
  std::string uuid;          ///< never empty: "PCI-<address>" or "INDEX-<n>" when it does not tell
  int index = 0;             ///< in the order of PCI addresses, as NVML counts; for people only
  std::optional<int> minor;  ///< N of /dev/nvidiaN
  std::string model;         ///< "Tesla K40m"; "" when unknown
  std::string brand;         ///< as CUDA images name it: "tesla", "geforcertx"; "" when unknown
  std::optional<std::uint64_t> memory_bytes;
  std::optional<ComputeCapability> compute_capability;
  std::optional<bool> ecc;  ///< current mode; absent where the card has none
  std::optional<PciAddress> pci;
  std::optional<int> board_id;  ///< GPUs of one board share it
  std::optional<int> numa_node;
  std::vector<int> cpus;  ///< of that NUMA node, ascending; empty when unknown
  /// "<cluster's UUID>.<number>" of the NVLink clique that reaches beyond this machine; "" for none.
  std::string clique;
  MigMode mig = MigMode::kUnsupported;
  std::string serial;
  /// Why it must not be given to anyone now, in words; empty when it is healthy.
  std::string unhealthy;
  /// The same, because somebody has said so, or has it; empty when nobody has. Not of the GPU's own.
  std::string cordoned;
  /// Queries that failed: each says which one and what NVML answered.
  std::vector<Error> problems;

  bool operator==(const Device&) const = default;
};

/// Why a GPU in MIG mode is unhealthy, when nothing else ails it.
inline constexpr const char* kInMigMode = "it is in MIG mode, so it cannot be given as a whole";

/// What ails it: not its mode, in which it is given in parts.
inline std::string_view illness_of(const Device& device) {
  return device.unhealthy == kInMigMode ? std::string_view() : device.unhealthy;
}

/// Why nobody gets it now: its health, or else its cordon. Empty when it may be given.
inline const std::string& why_withheld(const Device& device) {
  return device.unhealthy.empty() ? device.cordoned : device.unhealthy;
}

/// Whether parts of it may be given now: it is in MIG mode, and that is all that ails it.
inline bool gives_parts(const Device& device) {
  return device.mig == MigMode::kEnabled && device.cordoned.empty() &&
         (device.unhealthy.empty() || device.unhealthy == kInMigMode);
}

/// All GPUs of one machine and how they are wired.
struct Inventory {
  bool simulated = false;
  std::string simulation;                ///< profile name, when simulated
  std::string driver_version;            ///< "390.30"; "" without a driver
  std::string cuda_version;              ///< newest that the driver serves: "9.1"; "" when unknown
  std::vector<Device> devices;           ///< by index
  std::vector<std::vector<Link>> links;  ///< [i][j] between devices i and j; symmetric; devices.size() square
  std::vector<Error> problems;           ///< of the machine: no library, old driver, …

  bool operator==(const Inventory&) const = default;
};

}  // namespace drover::gpu
