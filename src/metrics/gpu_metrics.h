#pragma once

// What a machine's GPUs and their processes do, and who has them, as metrics. Names and labels are those of
// NVIDIA's DCGM exporter where unit and meaning are the same; the others begin with drover_. Pure.
// docs/metrics.md has them all, and a test holds it against the catalogue.
//
// Values of a GPU as a whole are told once, whoever has it, so that sums are right: they bear the labels
// that the names of all its holders begin with. What several containers of one GPU use is told by container
// and by process. Of a GPU in MIG mode, memory and containers are told by GPU instance.

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "gpu/device.h"
#include "gpu/health.h"
#include "gpu/mig.h"
#include "gpu/usage.h"
#include "metrics/exposition.h"

namespace drover::metrics {

/// Who uses GPUs: {{"namespace", "ml"}, {"pod", "train"}, {"container", "main"}}. All of one machine have the
/// same names in the same order.
using Owner = Labels;

struct ProcessFacts {
  std::string name;                             ///< what the kernel calls it; may hold anything
  Owner owner;                                  ///< empty when it is in nobody's container
  std::optional<std::uint32_t> inner_pid = {};  ///< as it is called in its own PID namespace, if it has one
  std::optional<uid_t> uid = {};                ///< whose it is, by the kernel
  std::string container = {};                   ///< id of the outermost one that it is in; "" for none known
};

/// What a container may have of a shared GPU's memory.
struct ShareFacts {
  Owner owner;
  std::string tier;  ///< gpu/share_tier.h
  std::uint64_t limit_bytes = 0;
  std::uint64_t overruns = 0, offences = 0;  ///< since it is watched
  /// What is counted of one that is guarded, as it says itself; refusals since it began.
  struct Guard {
    std::uint64_t charged_bytes = 0, refusals = 0;
  };
  std::optional<Guard> guard = {};
  /// Of one whose time is shared out; seconds since it began.
  struct Turns {
    double held = 0, lent = 0, busy = 0;
    std::uint64_t overruns = 0;
  };
  std::optional<Turns> turns = {};
};

struct MachineFacts {
  std::string host_name;
  gpu::Inventory inventory;
  gpu::Health health;
  std::map<std::string, gpu::GpuUsage> usage;         ///< by UUID
  std::map<std::string, std::vector<Owner>> holders;  ///< by UUID, of GPUs and MIG devices; each once
  std::map<std::uint32_t, ProcessFacts> processes;    ///< by pid
  /// By UUID, of GPUs in MIG mode; those that are not among them are told as a whole.
  std::map<std::string, gpu::MigGpu> mig;
  std::map<std::string, std::vector<ShareFacts>> shares = {};  ///< by UUID
  std::map<std::string, std::uint64_t> unattributed = {};      ///< bytes that no task's process has, by UUID
};

/// Every metric of families(), in its order.
std::vector<Metric> gpu_catalogue();

/// By GPU in the order of the inventory, then by owner or pid. Refers to nothing of `machine`.
std::vector<Family> gpu_families(const MachineFacts& machine);

}  // namespace drover::metrics
