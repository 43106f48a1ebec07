#include "metrics/gpu_metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>

namespace drover::metrics {
namespace {

using gpu::GpuUsage;
using gpu::MemoryUsage;
using gpu::ProcessUsage;
using gpu::Reading;

constexpr double kMib = 1 << 20;
constexpr double kKib = 1 << 10;

/// One reading: the value is told in units of `unit`.
template <typename Usage>
struct Gauge {
  Metric metric;
  Reading Usage::* reading;
  double unit = 1;
};

constexpr auto kCounter = Type::kCounter;
constexpr auto kGauge = Type::kGauge;

constexpr std::array kOfGpu = std::to_array<Gauge<GpuUsage>>({
    {{"DCGM_FI_DEV_GPU_UTIL", kGauge, "Time in which something ran on the GPU, in percent"},
     &GpuUsage::gpu_percent},
    {{"DCGM_FI_DEV_MEM_COPY_UTIL", kGauge, "Time in which its memory was read or written, in percent"},
     &GpuUsage::memory_percent},
    {{"DCGM_FI_DEV_ENC_UTIL", kGauge, "Use of the video encoders, in percent"}, &GpuUsage::encoder_percent},
    {{"DCGM_FI_DEV_DEC_UTIL", kGauge, "Use of the video decoders, in percent"}, &GpuUsage::decoder_percent},
    {{"DCGM_FI_DEV_SM_CLOCK", kGauge, "Clock of the multiprocessors, in MHz"}, &GpuUsage::sm_mhz},
    {{"DCGM_FI_DEV_MEM_CLOCK", kGauge, "Clock of the memory, in MHz"}, &GpuUsage::memory_mhz},
    {{"DCGM_FI_DEV_GPU_TEMP", kGauge, "Temperature of the GPU, in degrees Celsius"}, &GpuUsage::temperature},
    {{"DCGM_FI_DEV_MEMORY_TEMP", kGauge, "Temperature of the memory, in degrees Celsius"},
     &GpuUsage::memory_temperature},
    {{"DCGM_FI_DEV_POWER_USAGE", kGauge, "Power draw, in W"}, &GpuUsage::power_mw, 1000},
    {{"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", kCounter, "Energy since the driver was loaded, in mJ"},
     &GpuUsage::energy_mj},
    {{"DCGM_FI_DEV_PCIE_REPLAY_COUNTER", kCounter, "Transfers over PCIe that were repeated"},
     &GpuUsage::pcie_replays},
    {{"DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", kCounter, "Corrected memory errors since the driver was loaded"},
     &GpuUsage::corrected_volatile},
    {{"DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", kCounter, "Uncorrected memory errors since the driver was loaded"},
     &GpuUsage::uncorrected_volatile},
    {{"DCGM_FI_DEV_ECC_SBE_AGG_TOTAL", kCounter, "Corrected memory errors in the card's life"},
     &GpuUsage::corrected_aggregate},
    {{"DCGM_FI_DEV_ECC_DBE_AGG_TOTAL", kCounter, "Uncorrected memory errors in the card's life"},
     &GpuUsage::uncorrected_aggregate},
    {{"DCGM_FI_DEV_RETIRED_SBE", kCounter, "Memory pages retired for corrected errors"},
     &GpuUsage::retired_corrected},
    {{"DCGM_FI_DEV_RETIRED_DBE", kCounter, "Memory pages retired for uncorrected errors"},
     &GpuUsage::retired_uncorrected},
    {{"DCGM_FI_DEV_RETIRED_PENDING", kGauge, "1 if pages wait for the driver to be loaded anew"},
     &GpuUsage::retired_pending},
    {{"DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS", kCounter, "Memory rows replaced for corrected errors"},
     &GpuUsage::remapped_corrected},
    {{"DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", kCounter, "Memory rows replaced for uncorrected errors"},
     &GpuUsage::remapped_uncorrected},
    {{"DCGM_FI_DEV_ROW_REMAP_PENDING", kGauge, "1 if rows wait for a reset"}, &GpuUsage::remap_pending},
    {{"DCGM_FI_DEV_ROW_REMAP_FAILURE", kGauge, "1 if a row could not be replaced"}, &GpuUsage::remap_failed},
    {{"drover_gpu_pcie_sent_bytes_per_second", kGauge, "What went out over PCIe, as of the last 20 ms"},
     &GpuUsage::pcie_sent_kb,
     0.001},
    {{"drover_gpu_pcie_received_bytes_per_second", kGauge, "What came in over PCIe, as of the last 20 ms"},
     &GpuUsage::pcie_received_kb,
     0.001},
    {{"drover_gpu_nvlink_sent_bytes_total", kCounter, "Payload that went out over all NVLinks"},
     &GpuUsage::nvlink_sent_kib,
     1 / kKib},
    {{"drover_gpu_nvlink_received_bytes_total", kCounter, "Payload that came in over all NVLinks"},
     &GpuUsage::nvlink_received_kib,
     1 / kKib},
});

constexpr std::array kOfMemory = std::to_array<Gauge<MemoryUsage>>({
    {{"DCGM_FI_DEV_FB_TOTAL", kGauge, "Memory that the GPU has, in MiB"}, &MemoryUsage::total, kMib},
    {{"DCGM_FI_DEV_FB_FREE", kGauge, "Memory that is free, in MiB"}, &MemoryUsage::free, kMib},
    {{"DCGM_FI_DEV_FB_USED", kGauge, "Memory in use, in MiB"}, &MemoryUsage::used, kMib},
    {{"DCGM_FI_DEV_FB_RESERVED", kGauge, "Memory that the driver keeps for itself, in MiB"},
     &MemoryUsage::reserved,
     kMib},
});

constexpr std::array kOfContainer = std::to_array<Gauge<ProcessUsage>>({
    {{"drover_container_gpu_memory_bytes", kGauge, "GPU memory that the container's processes use"},
     &ProcessUsage::memory_bytes},
    {{"drover_container_gpu_sm_percent", kGauge, "Their use of the GPU's multiprocessors, in percent"},
     &ProcessUsage::sm_percent},
    {{"drover_container_gpu_memory_copy_percent", kGauge, "Their use of its memory's bandwidth, in percent"},
     &ProcessUsage::memory_percent},
    {{"drover_container_gpu_encoder_percent", kGauge, "Their use of its encoders, in percent"},
     &ProcessUsage::encoder_percent},
    {{"drover_container_gpu_decoder_percent", kGauge, "Their use of its decoders, in percent"},
     &ProcessUsage::decoder_percent},
});

constexpr std::array kOfProcess = std::to_array<Gauge<ProcessUsage>>({
    {{"drover_process_gpu_memory_bytes", kGauge, "GPU memory that the process uses"},
     &ProcessUsage::memory_bytes},
    {{"drover_process_gpu_sm_percent", kGauge, "Its use of the GPU's multiprocessors, in percent"},
     &ProcessUsage::sm_percent},
    {{"drover_process_gpu_memory_copy_percent", kGauge, "Its use of the memory's bandwidth, in percent"},
     &ProcessUsage::memory_percent},
    {{"drover_process_gpu_encoder_percent", kGauge, "Its use of the encoders, in percent"},
     &ProcessUsage::encoder_percent},
    {{"drover_process_gpu_decoder_percent", kGauge, "Its use of the decoders, in percent"},
     &ProcessUsage::decoder_percent},
});

constexpr Metric kLastXid{"DCGM_FI_DEV_XID_ERRORS", kGauge,
                          "The last XID error since Drover began to watch; 0 for none"};
constexpr Metric kXids{"drover_gpu_xid_errors_total", kCounter, "XID errors since Drover began to watch"};
constexpr Metric kAnswers{"drover_gpu_answers", kGauge, "1 if the GPU answered when it was asked for this"};
constexpr Metric kHealthy{"drover_gpu_healthy", kGauge, "1 if the GPU is fit to be given out"};
constexpr Metric kTrouble{"drover_gpu_trouble", kGauge,
                          "1 for each thing that is wrong; takes_out says whether it makes the GPU unfit"};
constexpr Metric kAllocated{"drover_gpu_allocated", kGauge, "1 if somebody has the GPU or a part of it"};
constexpr Metric kContainerHas{"drover_container_gpu_allocated", kGauge,
                               "1 for each container that has the GPU or a part of it"};
constexpr Metric kUnattributed{
    "drover_gpu_memory_unattributed_bytes", kGauge,
    "Memory of a shared GPU that no task's process holds, as far as the driver tells"};
constexpr Metric kLimit{"drover_container_gpu_memory_limit_bytes", kGauge,
                        "GPU memory that a container with a share may use; tier says what keeps it to that"};
constexpr Metric kCharged{"drover_container_gpu_memory_charged_bytes", kGauge,
                          "GPU memory that the guard counts for a container with a share"};
constexpr Metric kRefused{"drover_container_gpu_memory_refused_total", kCounter,
                          "Requests for more than that which the guard has refused, as the container says"};
constexpr Metric kTurns{"drover_container_gpu_turn_seconds_total", kCounter,
                        "How long it was the container's turn on a shared GPU that others wanted too"};
constexpr Metric kLent{"drover_container_gpu_turn_lent_seconds_total", kCounter,
                       "Of that, what it had because others did not want their part"};
constexpr Metric kBusy{"drover_container_gpu_measured_seconds_total", kCounter,
                       "GPU time that the guard has measured of its kernels, as the container says"};
constexpr Metric kTurnOverruns{"drover_container_gpu_turn_overruns_total", kCounter,
                               "Turns after which its work did not end in time"};
constexpr Metric kOverruns{"drover_container_gpu_share_overruns_total", kCounter,
                           "Looks, ten a second, in which it used more than that"};
constexpr Metric kOffences{"drover_container_gpu_share_offences_total", kCounter,
                           "How often it used so much more, for so long, that its owner was told"};
constexpr Metric kMachine{"drover_machine_info", kGauge, "Always 1: what the machine's driver is"};

std::string node_of(const gpu::Device& device) {
  return device.minor ? fmt::format("nvidia{}", *device.minor) : "";
}

/// As the exporter of NVIDIA spells it: "00000000:07:00.0".
std::string long_address(const gpu::Device& device) {
  if (!device.pci) return "";
  const auto& pci = *device.pci;
  return fmt::format("{:08X}:{:02X}:{:02X}.{:X}", pci.domain, pci.bus, pci.device, pci.function);
}

Labels labels_of(const gpu::Device& device, const MachineFacts& machine) {
  return {{"gpu", std::to_string(device.index)},
          {"UUID", device.uuid},
          {"pci_bus_id", long_address(device)},
          {"device", node_of(device)},
          {"modelName", device.model},
          {"Hostname", machine.host_name},
          {"DCGM_FI_DRIVER_VERSION", machine.inventory.driver_version}};
}

Labels joined(Labels labels, const Labels& more) {
  labels.insert(labels.end(), more.begin(), more.end());
  return labels;
}

/// What all of them begin with: a container's name says nothing without its pod's.
Labels common(const std::vector<Owner>& owners) {
  if (owners.empty()) return {};
  auto shared = owners.front().size();
  for (const auto& owner : owners)
    shared = std::min<std::size_t>(shared, std::ranges::mismatch(owner, owners.front()).in1 - owner.begin());
  return {owners.front().begin(), owners.front().begin() + static_cast<std::ptrdiff_t>(shared)};
}

void add(Reading& sum, const Reading& more) {
  if (more) sum = sum.value_or(0) + *more;
}

/// What containers have for themselves: a GPU, or an instance of one in MIG mode.
struct Part {
  std::optional<std::uint32_t> instance;
  std::string profile;
  std::vector<Owner> holders;
  MemoryUsage memory;
  std::vector<ProcessUsage> processes;
};

Labels instance_labels(const std::optional<std::uint32_t>& id, const std::string& profile) {
  if (!id) return {};
  return {{"GPU_I_PROFILE", profile}, {"GPU_I_ID", std::to_string(*id)}};
}

class Writer {
 public:
  explicit Writer(const MachineFacts& machine) : machine_(machine) {}

  void one(const Metric& metric, Labels labels, double value) {
    for (auto& family : families_)
      if (family.metric == &metric) return family.samples.push_back({std::move(labels), value});
    families_.push_back({&metric, {{std::move(labels), value}}});
  }
  template <typename Usage>
  void all(std::span<const Gauge<Usage>> gauges, const Usage& usage, const Labels& labels) {
    for (const auto& gauge : gauges)
      if (const auto& reading = usage.*gauge.reading)
        one(gauge.metric, labels, static_cast<double>(*reading) / gauge.unit);
  }

  void gpu(const gpu::Device& device) {
    const auto labels = labels_of(device, machine_);
    const auto holders = holders_of(device.uuid);
    const auto whole = joined(labels, common(holders));
    const auto found = machine_.usage.find(device.uuid);
    const auto usage = found == machine_.usage.end() ? GpuUsage{} : found->second;
    all<GpuUsage>(kOfGpu, usage, whole);
    state(device, usage, whole);
    one(kAllocated, whole, holders.empty() ? 0 : 1);
    for (const auto& part : parts_of(device, usage)) add_part(part, usage, labels);
    add_shares(device.uuid, labels, whole);
  }

  void machine() {
    const auto& inventory = machine_.inventory;
    one(kMachine,
        {{"Hostname", machine_.host_name},
         {"driver_version", inventory.driver_version},
         {"cuda_version", inventory.cuda_version},
         {"simulation", inventory.simulation}},
        1);
  }

  std::vector<Family> finish() && { return std::move(families_); }

 private:
  void state(const gpu::Device& device, const GpuUsage& usage, const Labels& labels) {
    const auto xids = machine_.health.xids(device.uuid);
    one(kLastXid, labels, static_cast<double>(xids.last.value_or(0)));
    for (const auto& [xid, count] : xids.counts)
      one(kXids, joined(labels, {{"xid", std::to_string(xid)}}), static_cast<double>(count));
    one(kAnswers, labels, usage.answers ? 1 : 0);
    one(kHealthy, labels, device.unhealthy.empty() && machine_.health.healthy(device.uuid) ? 1 : 0);
    std::map<Labels, bool> troubles;
    for (const auto& reason : machine_.health.reasons(device.uuid))
      troubles[{{"reason", std::string(to_string(reason.kind))},
                {"number", std::to_string(reason.number)},
                {"takes_out", reason.takes_out ? "true" : "false"}}] = true;
    for (const auto& [trouble, told] : troubles) one(kTrouble, joined(labels, trouble), 1);
  }

  std::vector<Owner> holders_of(const std::string& uuid) const {
    const auto held = machine_.holders.find(uuid);
    return held == machine_.holders.end() ? std::vector<Owner>{} : held->second;
  }

  /// The whole GPU when it is not cut. Otherwise its instances, and one with whoever is in none that is
  /// known.
  std::vector<Part> parts_of(const gpu::Device& device, const GpuUsage& usage) const {
    const auto holders = holders_of(device.uuid);
    const auto cut = machine_.mig.find(device.uuid);
    if (cut == machine_.mig.end() || cut->second.instances.empty())
      return {{{}, "", holders, usage.memory, usage.processes}};
    std::vector<Part> parts;
    Part rest{{}, "", holders, {}, usage.processes};
    for (const auto& instance : cut->second.instances) {
      Part part{instance.gpu_instance, "", holders_of(instance.uuid), {}, {}};
      if (const auto* profile = cut->second.profile(instance.profile_id)) part.profile = profile->name;
      for (const auto& told : usage.instances)
        if (told.gpu_instance == instance.gpu_instance) part.memory = told.memory;
      const auto is_its = [&](const ProcessUsage& process) { return process.instance.gpu == part.instance; };
      std::ranges::copy_if(rest.processes, std::back_inserter(part.processes), is_its);
      std::erase_if(rest.processes, is_its);
      std::erase_if(rest.holders,
                    [&](const Owner& owner) { return std::ranges::count(part.holders, owner) != 0; });
      parts.push_back(std::move(part));
    }
    parts.push_back(std::move(rest));
    return parts;
  }

  void add_part(const Part& part, const GpuUsage& usage, const Labels& of_gpu) {
    const auto labels = joined(of_gpu, instance_labels(part.instance, part.profile));
    all<MemoryUsage>(kOfMemory, part.memory, joined(labels, common(part.holders)));
    for (const auto& owner : part.holders) one(kContainerHas, joined(labels, owner), 1);
    if (usage.answers) processes(part, usage, labels);
  }

  void add_turns(const ShareFacts::Turns& turns, const Labels& labels) {
    one(kTurns, labels, turns.held);
    one(kLent, labels, turns.lent);
    one(kBusy, labels, turns.busy);
    one(kTurnOverruns, labels, static_cast<double>(turns.overruns));
  }

  void add_shares(const std::string& uuid, const Labels& of_gpu, const Labels& whole) {
    if (const auto found = machine_.unattributed.find(uuid); found != machine_.unattributed.end())
      one(kUnattributed, whole, static_cast<double>(found->second));
    const auto found = machine_.shares.find(uuid);
    if (found == machine_.shares.end()) return;
    for (const auto& share : found->second) {
      const auto labels = joined(of_gpu, share.owner);
      one(kLimit, joined(labels, {{"tier", share.tier}}), static_cast<double>(share.limit_bytes));
      if (share.guard) {
        one(kCharged, labels, static_cast<double>(share.guard->charged_bytes));
        one(kRefused, labels, static_cast<double>(share.guard->refusals));
      }
      if (share.turns) add_turns(*share.turns, labels);
      one(kOverruns, labels, static_cast<double>(share.overruns));
      one(kOffences, labels, static_cast<double>(share.offences));
    }
  }

  /// A container that has the GPU and does nothing is told of too, with zeros: so its values go on. But not
  /// with percentages that the driver tells of nobody.
  void processes(const Part& part, const GpuUsage& usage, const Labels& labels) {
    const auto none = usage.gpu_percent ? Reading(0) : std::nullopt;
    std::map<Owner, ProcessUsage> owners;
    for (const auto& owner : part.holders)
      owners[owner] = {.memory_bytes = 0,
                       .sm_percent = none,
                       .memory_percent = none,
                       .encoder_percent = none,
                       .decoder_percent = none};
    for (const auto& process : part.processes) {
      const auto found = machine_.processes.find(process.pid);
      const auto facts = found == machine_.processes.end() ? ProcessFacts{} : found->second;
      const auto place = part.instance ? Labels{} : instance_labels(process.instance.gpu, "");
      all<ProcessUsage>(kOfProcess, process,
                        joined(joined(joined(labels, place),
                                      {{"pid", std::to_string(process.pid)}, {"process", facts.name}}),
                               facts.owner));
      if (facts.owner.empty()) continue;
      auto& sum = owners[facts.owner];
      for (const auto& gauge : kOfProcess) add(sum.*gauge.reading, process.*gauge.reading);
    }
    for (const auto& [owner, sum] : owners) all<ProcessUsage>(kOfContainer, sum, joined(labels, owner));
  }

  const MachineFacts& machine_;
  std::vector<Family> families_;
};

}  // namespace

std::vector<Metric> gpu_catalogue() {
  std::vector<Metric> metrics;
  for (const auto& gauge : kOfGpu) metrics.push_back(gauge.metric);
  for (const auto& gauge : kOfMemory) metrics.push_back(gauge.metric);
  metrics.insert(metrics.end(),
                 {kLastXid, kXids, kAnswers, kHealthy, kTrouble, kAllocated, kUnattributed, kContainerHas,
                  kLimit, kCharged, kRefused, kTurns, kLent, kBusy, kTurnOverruns, kOverruns, kOffences});
  for (const auto& gauge : kOfContainer) metrics.push_back(gauge.metric);
  for (const auto& gauge : kOfProcess) metrics.push_back(gauge.metric);
  metrics.push_back(kMachine);
  return metrics;
}

std::vector<Family> gpu_families(const MachineFacts& machine) {
  Writer writer(machine);
  for (const auto& device : machine.inventory.devices) writer.gpu(device);
  writer.machine();
  return std::move(writer).finish();
}

}  // namespace drover::metrics
