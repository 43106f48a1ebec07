#pragma once

// A simulated machine as values: its host, its GPUs, and how they are wired. Read from a YAML file
// (docs/simulator.md is the format). Pure but for load_profile(), which reads one file; copyable; thread safe
// as values are.

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace drover::sim {

struct NumaNode {
  int id = 0;
  std::vector<int> cpus;  ///< ascending
};

struct Nic {
  std::string name;         ///< as RDMA or the kernel names it: "mlx5_0", "eth0"
  std::optional<int> numa;  ///< NumaNode::id, where it is known
};

/// What the node offers besides GPUs.
struct Host {
  int cpus = 0;
  std::uint64_t memory_mib = 0;
  std::uint64_t disk_mib = 0;
  std::vector<NumaNode> numa;  ///< by id; together they hold every CPU once
  std::vector<Nic> nics;       ///< each name once
  std::vector<std::string>
      cpu;  ///< names of its CPU, which add up (gpu/cpu.h reads them); empty: the real one's
};

struct PciAddress {
  std::uint32_t domain = 0;
  std::uint32_t bus = 0;
  std::uint32_t device = 0;

  auto operator<=>(const PciAddress&) const = default;
};

/// One kind of MIG slice that a card can be cut into.
struct MigProfile {
  std::string name;  ///< "1g.5gb"
  int slices = 0;
  int id = 0;
  int instances = 0;  ///< that fit on an empty card
  int multiprocessors = 0;
  int copy_engines = 0;
  int decoders = 0;
  std::uint64_t memory_mib = 0;
};

/// The facts of a card. What a card does not have is absent, and NVML answers "not supported".
struct Model {
  std::string name;          ///< as the driver of its time spells it
  std::string brand;         ///< tesla, geforce, nvidia
  std::string architecture;  ///< kepler … hopper
  int compute_major = 0;
  int compute_minor = 0;
  int cores = 0;
  int multiprocessors = 0;
  std::uint64_t memory_mib = 0;
  std::uint64_t reserved_mib = 0;  ///< of memory_mib, held by the driver
  std::uint64_t bar1_mib = 0;
  int memory_bus_bits = 0;
  std::uint32_t pci_device = 0;     ///< the vendor is NVIDIA's
  std::uint32_t pci_subsystem = 0;  ///< likewise
  std::string part_number;
  std::string vbios;
  std::string inforom;
  std::optional<bool> ecc;
  bool row_remapping = false;  ///< else bad pages are retired (where there is ECC)
  std::optional<int> fan_percent;
  int pcie_generation = 3;
  int pcie_lanes = 16;
  int power_limit_w = 0;
  int power_min_w = 0;
  int power_idle_w = 0;
  int clock_graphics_mhz = 0;  ///< the highest
  int clock_memory_mhz = 0;
  int clock_idle_mhz = 0;
  int temperature_idle_c = 0;
  int temperature_slowdown_c = 0;
  int temperature_shutdown_c = 0;
  std::vector<MigProfile> mig;  ///< empty: not capable
};

struct Gpu {
  Model model;
  std::string uuid;
  std::string serial;  ///< "" where the model has none
  int minor = 0;       ///< N of /dev/nvidiaN
  PciAddress pci;
  int numa = 0;                      ///< NumaNode::id
  std::vector<std::string> bridges;  ///< host bridge first, then the PCIe switches down to the card
  int board = 0;                     ///< GPUs of one board share it
  bool multi_gpu_board = false;
  bool mig = false;   ///< MIG mode is enabled, unless the MIG file says otherwise
  int cpu_links = 0;  ///< NVLinks that go to the CPU (POWER)
};

struct NvLink {
  int version = 0;  ///< 1 … 4
  int speed_mbps = 0;
  std::vector<PciAddress> switches;  ///< NVSwitches; empty where GPUs are wired to each other
};

/// The NVLink fabric that its GPUs have joined.
struct Fabric {
  std::array<unsigned char, 16> cluster{};  ///< UUID; zero where no other machine takes part
  std::uint32_t clique = 0;
};

struct Profile {
  std::string name;
  std::string description;
  std::string driver_version;
  int cuda_major = 0;
  int cuda_minor = 0;
  Host host;
  std::vector<Gpu> gpus;  ///< by PCI address, as NVML counts them
  NvLink nvlink;
  std::optional<Fabric> fabric;
  std::vector<std::vector<int>> links;  ///< [i][j]: NVLinks between GPUs i and j, or of each to the switches
};

/// Text like "0-3,8,10-11"; empty is an empty list. Refuses what is not ascending.
Result<std::vector<int>> parse_cpu_list(const std::string& text);

/// "0000:82:00.0", with a domain of 4 or 8 digits, or none.
Result<PciAddress> parse_pci_address(const std::string& text);
/// "00000000:82:00.0" or, with 4 digits, "0000:82:00.0".
std::string to_string(const PciAddress& address, int domain_digits = 8);

/// The position of the GPU that `key` names: by position, UUID or PCI address.
std::optional<std::size_t> gpu_named(const Profile& profile, const std::string& key);

/// Looks random, and is the same for the same seed on every machine: "6fcb514b-…".
std::string made_up_uuid(const std::string& seed);

/// Every mistake of the document is in the error's message, with its path ("/gpus/0/numa"). `what` names it.
Result<Profile> decode_profile(const nlohmann::json& document, std::string_view what);
Result<Profile> load_profile(const std::filesystem::path& file);

}  // namespace drover::sim
