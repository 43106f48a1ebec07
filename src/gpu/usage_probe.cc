#include "gpu/usage_probe.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "gpu/mig_devices.h"

namespace drover::gpu {
namespace {

constexpr unsigned int kSpareRoom = 16;  ///< processes may come while they are counted
constexpr unsigned int kMostRoom = 65536;

/// What `function(handle, arguments..., &value)` answers.
template <typename Value, typename Function, typename... Arguments>
Reading read_one(Function function, nvmlDevice_t handle, Arguments... arguments) {
  Value value{};
  if (function == nullptr || function(handle, arguments..., &value) != NVML_SUCCESS) return std::nullopt;
  return value;
}

/// What a call answers that fills a list.
template <typename Item, typename Function, typename... Arguments>
std::vector<Item> read_list(Function function, nvmlDevice_t handle, Arguments... last) {
  std::vector<Item> items;
  if (function == nullptr) return items;
  auto code = NVML_ERROR_INSUFFICIENT_SIZE;
  for (unsigned int room = 0; code == NVML_ERROR_INSUFFICIENT_SIZE && room <= kMostRoom;) {
    items.resize(room);
    unsigned int count = room;
    code = function(handle, &count, items.data(), last...);
    if (code == NVML_SUCCESS) items.resize(std::min(count, room));
    room = std::max(count, room) + kSpareRoom;
  }
  if (code != NVML_SUCCESS) items.clear();
  return items;
}

struct Field {
  unsigned int id;
  Reading GpuUsage::* member;
};
constexpr Field kFields[] = {
    {NVML_FI_DEV_MEMORY_TEMP, &GpuUsage::memory_temperature},
    {NVML_FI_DEV_ECC_SBE_VOL_TOTAL, &GpuUsage::corrected_volatile},
    {NVML_FI_DEV_ECC_DBE_VOL_TOTAL, &GpuUsage::uncorrected_volatile},
    {NVML_FI_DEV_ECC_SBE_AGG_TOTAL, &GpuUsage::corrected_aggregate},
    {NVML_FI_DEV_ECC_DBE_AGG_TOTAL, &GpuUsage::uncorrected_aggregate},
    {NVML_FI_DEV_RETIRED_SBE, &GpuUsage::retired_corrected},
    {NVML_FI_DEV_RETIRED_DBE, &GpuUsage::retired_uncorrected},
    {NVML_FI_DEV_RETIRED_PENDING, &GpuUsage::retired_pending},
    {NVML_FI_DEV_REMAPPED_COR, &GpuUsage::remapped_corrected},
    {NVML_FI_DEV_REMAPPED_UNC, &GpuUsage::remapped_uncorrected},
    {NVML_FI_DEV_REMAPPED_PENDING, &GpuUsage::remap_pending},
    {NVML_FI_DEV_REMAPPED_FAILURE, &GpuUsage::remap_failed},
    {NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX, &GpuUsage::nvlink_sent_kib},
    {NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX, &GpuUsage::nvlink_received_kib},
};

void read_fields(const NvmlFunctions& f, nvmlDevice_t handle, GpuUsage& usage) {
  if (f.field_values == nullptr) return;
  std::array<nvmlFieldValue_t, std::size(kFields)> values{};
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i].fieldId = kFields[i].id;
    const bool of_links = kFields[i].member == &GpuUsage::nvlink_sent_kib ||
                          kFields[i].member == &GpuUsage::nvlink_received_kib;
    if (of_links) values[i].scopeId = NVML_FI_ALL_LINKS;
  }
  if (f.field_values(handle, static_cast<int>(values.size()), values.data()) != NVML_SUCCESS) return;
  for (std::size_t i = 0; i < values.size(); ++i)
    if (values[i].nvmlReturn == NVML_SUCCESS) usage.*kFields[i].member = unsigned_value(values[i]);
}

/// Of a GPU or of a MIG device.
MemoryUsage read_memory(const NvmlFunctions& f, nvmlDevice_t handle) {
  nvmlMemory_v2_t exact{};
  exact.version = NVML_STRUCT_VERSION(Memory, 2);
  if (f.memory_info_v2 != nullptr && f.memory_info_v2(handle, &exact) == NVML_SUCCESS)
    return {exact.total, exact.used, exact.free, exact.reserved};
  nvmlMemory_t memory{};
  if (f.memory_info == nullptr || f.memory_info(handle, &memory) != NVML_SUCCESS) return {};
  return {memory.total, memory.used, memory.free, std::nullopt};
}

/// Compute instances share the memory of their GPU instance, so one of them tells it.
std::vector<InstanceUsage> read_instances(const Nvml& nvml, nvmlDevice_t gpu) {
  std::vector<InstanceUsage> instances;
  for (const auto& device : list_mig_devices(nvml, gpu))
    if (std::ranges::find(instances, device.gpu_instance, &InstanceUsage::gpu_instance) == instances.end())
      instances.push_back({device.gpu_instance, read_memory(nvml.functions(), device.handle)});
  return instances;
}

void read_rates(const NvmlFunctions& f, nvmlDevice_t handle, GpuUsage& usage) {
  nvmlUtilization_t rates{};
  if (f.utilization == nullptr || f.utilization(handle, &rates) != NVML_SUCCESS) return;
  usage.gpu_percent = rates.gpu;
  usage.memory_percent = rates.memory;
}

void read_load(const NvmlFunctions& f, nvmlDevice_t handle, GpuUsage& usage) {
  read_rates(f, handle, usage);
  unsigned int percent = 0;
  unsigned int period = 0;
  if (f.encoder_utilization != nullptr && f.encoder_utilization(handle, &percent, &period) == NVML_SUCCESS)
    usage.encoder_percent = percent;
  if (f.decoder_utilization != nullptr && f.decoder_utilization(handle, &percent, &period) == NVML_SUCCESS)
    usage.decoder_percent = percent;
}

std::optional<std::uint32_t> instance(unsigned int id) {
  return id == NVML_NO_INSTANCE_ID ? std::nullopt : std::optional<std::uint32_t>(id);
}
MigInstance instance_of(const nvmlProcessInfo_v2_t& info) {
  return {instance(info.gpuInstanceId), instance(info.computeInstanceId)};
}
MigInstance instance_of(const nvmlProcessInfo_v1_t& /*info*/) {
  return {};
}

/// One process may be told of several times: it computes, and draws. Its memory is the same then.
template <typename Info>
void add(const std::vector<Info>& infos, std::map<std::uint32_t, ProcessUsage>& found) {
  constexpr auto kUnknown = static_cast<unsigned long long>(NVML_VALUE_NOT_AVAILABLE);
  for (const auto& info : infos) {
    auto& usage = found[info.pid];
    usage.pid = info.pid;
    usage.instance = instance_of(info);
    if (info.usedGpuMemory != kUnknown)
      usage.memory_bytes = std::max<std::uint64_t>(usage.memory_bytes.value_or(0), info.usedGpuMemory);
  }
}

}  // namespace

std::vector<ProcessUsage> UsageProbe::processes(const Nvml& nvml, std::size_t most) {
  const auto& f = nvml.functions();
  std::map<std::uint32_t, ProcessUsage> found;
  for (std::size_t kind = 0; kind < f.processes_v2.size(); ++kind)
    if (f.processes_v2[kind] != nullptr)
      add(read_list<nvmlProcessInfo_v2_t>(f.processes_v2[kind], handle_.get()), found);
    else
      add(read_list<nvmlProcessInfo_v1_t>(f.processes_v1[kind], handle_.get()), found);
  std::vector<ProcessUsage> processes;
  for (auto& [pid, usage] : found)
    if (processes.size() < most) processes.push_back(std::move(usage));
  return processes;
}

/// The driver has a sample of each process that did something lately.
void UsageProbe::add_utilization(const Nvml& nvml, std::vector<ProcessUsage>& processes) {
  const auto ask = nvml.functions().process_utilization;
  if (ask == nullptr || processes.empty()) return;
  unsigned int count = 0;
  auto code = ask(handle_.get(), nullptr, &count, seen_until_);
  std::vector<nvmlProcessUtilizationSample_t> samples(std::min<std::size_t>(count, kMostProcesses));
  if (code == NVML_ERROR_INSUFFICIENT_SIZE && !samples.empty()) {
    count = static_cast<unsigned int>(samples.size());
    code = ask(handle_.get(), samples.data(), &count, seen_until_);
    samples.resize(std::min<std::size_t>(count, samples.size()));
  }
  if (code != NVML_SUCCESS && code != NVML_ERROR_NOT_FOUND) return;
  if (code == NVML_ERROR_NOT_FOUND) samples.clear();
  std::ranges::sort(samples, {}, &nvmlProcessUtilizationSample_t::timeStamp);
  for (auto& process : processes) {
    nvmlProcessUtilizationSample_t newest{};
    for (const auto& sample : samples)
      if (sample.pid == process.pid) newest = sample;
    process.sm_percent = newest.smUtil;
    process.memory_percent = newest.memUtil;
    process.encoder_percent = newest.encUtil;
    process.decoder_percent = newest.decUtil;
  }
  if (!samples.empty()) seen_until_ = std::max(seen_until_, samples.back().timeStamp);
}

GpuUsage UsageProbe::sample(const Nvml& nvml) {
  GpuUsage usage;
  if (handle_.renew(nvml) != NVML_SUCCESS) return usage;
  const auto& f = nvml.functions();
  auto* const handle = handle_.get();
  usage.answers = true;
  read_load(f, handle, usage);
  usage.memory = read_memory(f, handle);
  usage.instances = read_instances(nvml, handle);
  read_fields(f, handle, usage);
  usage.sm_mhz = read_one<unsigned int>(f.clock_info, handle, NVML_CLOCK_SM);
  usage.memory_mhz = read_one<unsigned int>(f.clock_info, handle, NVML_CLOCK_MEM);
  usage.temperature = read_one<unsigned int>(f.temperature, handle, NVML_TEMPERATURE_GPU);
  usage.power_mw = read_one<unsigned int>(f.power_usage, handle);
  usage.energy_mj = read_one<unsigned long long>(f.total_energy, handle);
  usage.pcie_replays = read_one<unsigned int>(f.pcie_replays, handle);
  usage.pcie_sent_kb = read_one<unsigned int>(f.pcie_throughput, handle, NVML_PCIE_UTIL_TX_BYTES);
  usage.pcie_received_kb = read_one<unsigned int>(f.pcie_throughput, handle, NVML_PCIE_UTIL_RX_BYTES);
  usage.processes = processes(nvml, kMostProcesses);
  add_utilization(nvml, usage.processes);
  // A handle works on after the GPU was lost, but nothing is answered.
  usage.answers = handle_.renew(nvml) == NVML_SUCCESS;
  return usage.answers ? usage : GpuUsage{};
}

GpuUsage UsageProbe::sample_work(const Nvml& nvml) {
  auto usage = sample_memory(nvml);
  if (!usage.answers) return usage;
  read_rates(nvml.functions(), handle_.get(), usage);
  add_utilization(nvml, usage.processes);
  return usage;
}

GpuUsage UsageProbe::sample_memory(const Nvml& nvml) {
  GpuUsage usage;
  if (handle_.renew(nvml) != NVML_SUCCESS) return usage;
  usage.memory = read_memory(nvml.functions(), handle_.get());
  usage.processes = processes(nvml, kMostRoom);
  usage.answers = handle_.renew(nvml) == NVML_SUCCESS;
  return usage.answers ? usage : GpuUsage{};
}

}  // namespace drover::gpu
