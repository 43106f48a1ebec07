#include "gpu/discovery.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <climits>
#include <span>

#include "gpu/links.h"
#include "gpu/query.h"

namespace drover::gpu {
namespace {

constexpr std::size_t kWordBits = sizeof(unsigned long) * CHAR_BIT;
using Mask = std::array<unsigned long, 8192 / kWordBits>;  // the most CPUs of a Linux kernel

std::vector<int> bits_of(const Mask& mask) {
  std::vector<int> bits;
  for (std::size_t bit = 0; bit < mask.size() * kWordBits; ++bit)
    if ((mask[bit / kWordBits] >> (bit % kWordBits) & 1UL) != 0) bits.push_back(static_cast<int>(bit));
  return bits;
}

template <std::size_t Size, typename Function>
std::string ask_text(Query& query, const char* name, Function function) {
  std::array<char, Size> buffer{};
  if (!query.ask(name, function, buffer.data(), static_cast<unsigned>(buffer.size()))) return "";
  buffer.back() = '\0';
  return buffer.data();
}

void ask_place(Query& query, Device& device) {
  const auto& f = query.functions();
  nvmlPciInfo_t info{};
  nvmlPciInfo_v2_t old_info{};
  if (f.pci_info_v3 != nullptr) {
    if (query.ask("nvmlDeviceGetPciInfo_v3", f.pci_info_v3, &info))
      device.pci = PciAddress{info.domain, info.bus, info.device, 0};
  } else if (query.ask("nvmlDeviceGetPciInfo_v2", f.pci_info_v2, &old_info)) {
    device.pci = PciAddress{old_info.domain, old_info.bus, old_info.device, 0};
  }
  Mask cpus{};
  if (query.ask("nvmlDeviceGetCpuAffinity", f.cpu_affinity, static_cast<unsigned>(cpus.size()), cpus.data()))
    device.cpus = bits_of(cpus);
  Mask nodes{};
  if (query.ask("nvmlDeviceGetMemoryAffinity", f.memory_affinity, static_cast<unsigned>(nodes.size()),
                nodes.data(), static_cast<nvmlAffinityScope_t>(NVML_AFFINITY_SCOPE_NODE)))
    if (const auto found = bits_of(nodes); !found.empty()) device.numa_node = found.front();
}

/// In the words of libnvidia-container, which NVIDIA_REQUIRE_… of images use; by the number of the brand.
std::string brand_name(nvmlBrandType_t brand) {
  constexpr std::array<const char*, 17> kNames{
      "unknown", "quadro", "tesla",       "nvs",       "grid",      "geforce", "titan",      "vapps",   "vpc",
      "vcs",     "vws",    "cloudgaming", "quadrortx", "nvidiartx", "nvidia",  "geforcertx", "titanrtx"};
  const auto number = static_cast<std::size_t>(brand);
  return number < kNames.size() ? kNames.at(number) : kNames.front();
}

/// Where no other machine takes part, the cluster has no UUID.
std::string clique_of(const nvmlGpuFabricInfo_t& info) {
  const std::span<const unsigned char> cluster(info.clusterUuid);
  const bool joined = info.state == NVML_GPU_FABRIC_STATE_COMPLETED && info.status == NVML_SUCCESS;
  if (!joined || std::ranges::all_of(cluster, [](unsigned char byte) { return byte == 0; })) return "";
  const auto hex = [&](std::size_t from, std::size_t count) {
    return fmt::format("{:02x}", fmt::join(cluster.subspan(from, count), ""));
  };
  return fmt::format("{}-{}-{}-{}-{}.{}", hex(0, 4), hex(4, 2), hex(6, 2), hex(8, 2), hex(10, 6),
                     info.cliqueId);
}

void ask_attributes(Query& query, Device& device) {
  const auto& f = query.functions();
  device.model = ask_text<NVML_DEVICE_NAME_V2_BUFFER_SIZE>(query, "nvmlDeviceGetName", f.name);
  nvmlBrandType_t brand{};
  if (query.ask("nvmlDeviceGetBrand", f.brand, &brand)) device.brand = brand_name(brand);
  device.serial = ask_text<NVML_DEVICE_SERIAL_BUFFER_SIZE>(query, "nvmlDeviceGetSerial", f.serial);
  nvmlMemory_t memory{};
  if (query.ask("nvmlDeviceGetMemoryInfo", f.memory_info, &memory)) device.memory_bytes = memory.total;
  ComputeCapability capability;
  if (query.ask("nvmlDeviceGetCudaComputeCapability", f.compute_capability, &capability.major,
                &capability.minor))
    device.compute_capability = capability;
  nvmlEnableState_t ecc{};
  nvmlEnableState_t ecc_pending{};
  if (query.ask("nvmlDeviceGetEccMode", f.ecc_mode, &ecc, &ecc_pending))
    device.ecc = ecc == NVML_FEATURE_ENABLED;
  unsigned mig = 0;
  unsigned mig_pending = 0;
  if (query.ask("nvmlDeviceGetMigMode", f.mig_mode, &mig, &mig_pending))
    device.mig = mig == NVML_DEVICE_MIG_ENABLE ? MigMode::kEnabled : MigMode::kDisabled;
  nvmlGpuFabricInfo_t fabric{};
  if (query.ask("nvmlDeviceGetGpuFabricInfo", f.fabric_info, &fabric)) device.clique = clique_of(fabric);
  unsigned board = 0;
  if (query.ask("nvmlDeviceGetBoardId", f.board_id, &board)) device.board_id = static_cast<int>(board);
}

void ask_identity(Query& query, Device& device) {
  const auto& f = query.functions();
  device.uuid = ask_text<NVML_DEVICE_UUID_BUFFER_SIZE>(query, "nvmlDeviceGetUUID", f.uuid);
  unsigned minor = 0;
  if (query.ask("nvmlDeviceGetMinorNumber", f.minor_number, &minor)) device.minor = static_cast<int>(minor);
}

/// What the kernel knows and NVML did not say.
void fill_from_kernel(const Kernel& kernel, Device& device) {
  if (!device.pci) return;
  if (!device.minor) device.minor = kernel.minor(*device.pci);
  if (!device.numa_node) device.numa_node = kernel.numa_node(*device.pci);
  if (device.cpus.empty()) device.cpus = kernel.cpus(*device.pci);
}

void fill_from_host(const std::vector<NumaNode>& numa, Device& device) {
  for (const auto& node : numa) {
    const bool near = !device.cpus.empty() && std::ranges::binary_search(node.cpus, device.cpus.front());
    if (!device.numa_node && near) device.numa_node = node.id;
    if (device.cpus.empty() && device.numa_node == node.id) device.cpus = node.cpus;
  }
}

void judge(Device& device) {
  const auto unhealthy = [&](std::string why) {
    if (device.unhealthy.empty()) device.unhealthy = std::move(why);
  };
  if (device.uuid.empty()) unhealthy("it does not tell its UUID");
  if (!device.minor) unhealthy("nothing tells the number of its device file");
  if (device.mig == MigMode::kEnabled) unhealthy(kInMigMode);
  if (device.uuid.empty())
    device.uuid = device.pci ? "PCI-" + to_string(*device.pci) : fmt::format("INDEX-{}", device.index);
}

/// A GPU that NVML gives no handle for tells nothing, but when the kernel knows exactly one GPU more than
/// those that told their address, it must be that one.
void locate_silent(const Kernel& kernel, std::vector<Device>& devices) {
  auto rest = kernel.nvidia_gpus();
  std::vector<Device*> silent;
  for (auto& device : devices) {
    if (device.pci)
      std::erase(rest, *device.pci);
    else
      silent.push_back(&device);
  }
  if (silent.size() == 1 && rest.size() == 1) silent.front()->pci = rest.front();
}

Device discover_device(const Nvml& nvml, unsigned index, nvmlDevice_t& handle) {
  Device device;
  device.index = static_cast<int>(index);
  if (const auto code = nvml.functions().device_by_index(index, &handle); code != NVML_SUCCESS) {
    handle = nullptr;
    const auto text = nvml.error_text(code);
    const auto gone = gone_text(code);
    device.unhealthy = gone.empty() ? text : gone;
    device.problems.push_back(
        {ErrorKind::kUnavailable, "nvmlDeviceGetHandleByIndex: " + text, "see dmesg for its XID", ""});
    return device;
  }
  Query query(nvml, handle, device);
  ask_identity(query, device);
  ask_place(query, device);
  ask_attributes(query, device);
  return device;
}

void discover_devices(const Nvml& nvml, const DiscoveryOptions& options, Inventory& inventory) {
  unsigned count = 0;
  if (const auto code = nvml.functions().device_count(&count); code != NVML_SUCCESS) {
    inventory.problems.push_back({ErrorKind::kUnavailable, "nvmlDeviceGetCount: " + nvml.error_text(code),
                                  "check that the kernel module 'nvidia' is loaded (lsmod, dmesg)", ""});
    return;
  }
  auto& devices = inventory.devices;
  std::vector<nvmlDevice_t> handles(count);
  for (unsigned index = 0; index < count; ++index)
    devices.push_back(discover_device(nvml, index, handles[index]));
  const auto* kernel = options.kernel ? &*options.kernel : nullptr;
  if (kernel != nullptr) locate_silent(*kernel, devices);
  for (auto& device : devices) {
    if (kernel != nullptr) fill_from_kernel(*kernel, device);
    fill_from_host(options.numa, device);
    judge(device);
  }
  inventory.links = discover_links(nvml, handles, devices, kernel);
}

/// GPUs that only the kernel sees: hardware that would otherwise be missed in silence.
void report_unmanaged(const Kernel& kernel, Inventory& inventory) {
  auto unmanaged = kernel.nvidia_gpus();
  for (const auto& device : inventory.devices)
    if (device.pci) std::erase(unmanaged, *device.pci);
  if (unmanaged.empty()) return;
  std::string addresses;
  for (const auto& address : unmanaged) addresses += (addresses.empty() ? "" : ", ") + to_string(address);
  inventory.problems.push_back(
      {ErrorKind::kUnavailable,
       fmt::format("the kernel sees {} NVIDIA GPU{} that the driver does not offer: {}", unmanaged.size(),
                   unmanaged.size() == 1 ? "" : "s", addresses),
       "install or load the NVIDIA driver, or see dmesg for why it does not take them", ""});
}

}  // namespace

Inventory discover(const Result<Nvml>& nvml, const DiscoveryOptions& options) {
  Inventory inventory;
  inventory.simulated = !options.simulation.empty();
  inventory.simulation = options.simulation;
  if (nvml) {
    inventory.driver_version = nvml->driver_version();
    int cuda = 0;
    const auto cuda_version = nvml->functions().cuda_version;
    if (cuda_version != nullptr && cuda_version(&cuda) == NVML_SUCCESS)
      inventory.cuda_version = fmt::format("{}.{}", cuda / 1000, cuda % 1000 / 10);
    discover_devices(*nvml, options, inventory);
  } else {
    inventory.problems.push_back(nvml.error());
  }
  if (options.kernel) report_unmanaged(*options.kernel, inventory);
  return inventory;
}

}  // namespace drover::gpu
