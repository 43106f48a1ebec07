#pragma once

// The fields of a request that say what a task needs, and the way back. Pure.
//
//   gpus                    2 | 0.5 (a part of one) | [{"count", "model", "memory", "compute_capability",
//   "ecc",
//                           "driver"}, …]
//   gpu_model, gpu_memory, gpu_compute_capability, gpu_ecc, gpu_driver
//                           the same filters when all GPUs are of one kind; with one of them, or with
//                           gpu_share, gpus is 1 when it is left out
//   gpu_share               0.5 | "8GiB" of each GPU
//   share_by                "auto" | "mig" | "kernel" | "mps" | "limits" | "none": what holds the task to it;
//   with
//                           "mps", how the tasks of the group share whole GPUs
//   gpu_part                "1g.10gb": MIG instances of this profile instead of GPUs, as many as gpus says
//   different_models        bool
//   interconnect            how near each pair is at least: see parse_interconnect()
//   cpu_affinity, nic       "none" | "prefer" | "require"
//   constraints             {"rack": ["r7", "r8"] | "r7"}
//   group                   name
//   cpus, memory

#include <array>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "base/decode.h"
#include "workload/resources.h"

namespace drover::workload {

/// Reads the fields of a request into `resources`; what is absent stays as it is there. Every mistake is
/// recorded, contradictions too.
void decode_resources(Decoder& decoder, Resources& resources);

/// {"gpu_share": 0.5 | "8GiB"}, and nothing else. kInvalid tells every mistake.
Result<Share> decode_share(const nlohmann::json& body);

/// Reads them from a task as it is stored (task_writer.h).
void decode_stored_resources(Decoder& decoder, Resources& resources);

/// "nvlink:2", "nvlink", "switch" (PIX), "switches" (PXB), "bridge" (PHB), "node" (NODE), "any" (SYS); also
/// as `nvidia-smi topo -m` spells them ("NV2", "PHB") and "qpi", in any case.
Result<Interconnect> parse_interconnect(std::string_view text);
std::string to_string(const Interconnect& interconnect);

/// By the value of ShareBy.
inline constexpr std::array<std::string_view, 6> kShareWays = {"auto", "mig",    "kernel",
                                                               "mps",  "limits", "none"};
/// One of them; nullopt for any other word.
std::optional<ShareBy> parse_share_by(std::string_view word);

std::string_view to_string(Preference preference);
/// By the value of Arrangement.
inline constexpr std::array<std::string_view, 3> kArrangements = {"pack", "spread", "any"};
std::string_view to_string(Arrangement arrangement);

/// 1 to 64 of [A-Za-z0-9._-]: the names of groups, namespaces and each level of a queue's path.
bool is_plain_name(std::string_view text);

}  // namespace drover::workload
