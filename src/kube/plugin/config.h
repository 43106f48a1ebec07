#pragma once

// How a node's GPUs are offered to the kubelet's device manager. The file is that of NVIDIA's device plugin
// (version v1), where the meaning is the same.
//
//   version: v1
//   flags:
//     plugin: {deviceListStrategy: [cdi-cri], passDeviceSpecs: true, deviceIDStrategy: uuid}
//   resources:
//     gpus:
//       - {pattern: "*", name: nvidia.com/gpu}
//       - {pattern: "*A100*", name: nvidia.com/a100}      # the same GPUs under a second name
//   sharing:
//     timeSlicing:
//       renameByDefault: true
//       resources: [{name: nvidia.com/gpu, replicas: 4}]
//     mps:                                                  # instead of timeSlicing
//       resources: [{name: nvidia.com/gpu, replicas: 4}]
//     drover:                                               # instead of both, and Drover's alone
//       resources: [{name: nvidia.com/gpu, memory: 8GiB, compute: 25}]

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace drover::kube {

/// How a container gets to know its GPUs: the words of NVIDIA's `--device-list-strategy`.
enum class ListStrategy { kEnvironment, kVolumeMounts, kCdiAnnotations, kCdiCri };

/// Which replica of shared GPUs goes next: that of the GPU with the most left, or with the fewest.
enum class SharedPolicy { kDistributed, kPacked };

/// Whether parts of GPUs in MIG mode, that somebody has cut already, are offered, and by which names: the
/// words of NVIDIA's `--mig-strategy`. With kSingle they are nvidia.com/gpu, with kMixed
/// nvidia.com/mig-<profile>.
enum class MigStrategy { kNone, kSingle, kMixed };

/// A resource name, and the GPUs that it stands for. A GPU may have several names.
struct ResourceRule {
  std::string name;     ///< "nvidia.com/gpu"
  std::string pattern;  ///< of the model, with '*' for anything; letter case matters

  bool operator==(const ResourceRule&) const = default;
};

/// What keeps those who share a GPU to their parts: nothing, since they take turns; an MPS daemon; the guard
/// (docs/shares.md).
enum class ShareWay { kTimeSlices, kMps, kGuard };

inline constexpr int kMostReplicas = 1000;

struct ShareRule {
  std::string resource;              ///< the name in ResourceRule
  int replicas = 2;                  ///< 0: as many as fit
  std::string rename;                ///< what it is offered as; "" for its own name
  std::vector<std::string> devices;  ///< UUIDs or indices of the GPUs that are shared; empty: all
  ShareWay way = ShareWay::kTimeSlices;
  std::optional<std::uint64_t> memory = std::nullopt;  ///< bytes of each replica; absent: a part of all
  std::optional<int> compute = std::nullopt;           ///< percent of the time; absent: as of the memory

  bool operator==(const ShareRule&) const = default;
};

struct PluginConfig {
  std::vector<ResourceRule> resources = {{"nvidia.com/gpu", "*"}};
  std::vector<ShareRule> shares;
  bool refuse_several_shares = false;  ///< a container asks for one replica at most
  /// Device nodes beside what CDI does. Absent: where the runtime is not known to do CDI.
  std::optional<bool> pass_device_specs;
  std::vector<ListStrategy> strategies = {ListStrategy::kCdiCri};
  bool ids_are_indices = false;  ///< in NVIDIA_VISIBLE_DEVICES
  MigStrategy mig = MigStrategy::kNone;
  std::string cdi_annotation_prefix = "cdi.k8s.io/";
  SharedPolicy shared_policy = SharedPolicy::kDistributed;

  bool shares_by(ShareWay way) const;
  bool operator==(const PluginConfig&) const = default;
};

struct LoadedConfig {
  PluginConfig config;
  /// What the file says that has no effect here, a sentence each: for the log.
  std::vector<std::string> ignored;
};

/// All mistakes at once, with their paths.
Result<LoadedConfig> decode_plugin_config(const nlohmann::json& document, std::string_view what);

/// The same of a file, YAML or JSON.
Result<LoadedConfig> read_plugin_config(const std::string& file);

/// Whether Kubernetes takes it for an extended resource: "domain/name", and both not too long.
bool is_resource_name(std::string_view name);

/// '*' stands for any characters, also none.
bool matches(std::string_view pattern, std::string_view text);

}  // namespace drover::kube
