#pragma once

// What a container gets to have its GPUs, in the words of the device plugin API. Pure.

#include <map>
#include <string>
#include <vector>

#include "gpu/device.h"
#include "gpu/device_node.h"
#include "kube/plugin/config.h"
#include "share/mps_daemons.h"

namespace drover::kube {

/// The specification that the node agent keeps for containers of the device plugin: NVIDIA's name for it.
inline constexpr const char* kPluginCdiKind = "k8s.device-plugin.nvidia.com/gpu";

/// That of containers that are held to a replica: each has a device of its own.
inline constexpr const char* kReplicaCdiKind = "k8s.device-plugin.nvidia.com/replica";

/// Whether containers get their GPUs as CDI devices, and with them the one of their set (gpu_sets.h).
bool names_cdi_devices(const PluginConfig& config);

/// Whether the node's container runtime does what CDI specifications say.
enum class CdiSupport { kYes, kNo, kUnknown };

/// A device node, and where it comes from on the host.
struct GrantedPath {
  std::string container_path, host_path;

  bool operator==(const GrantedPath&) const = default;
};

struct GrantedMount {
  std::string container_path, host_path;
  bool writable = false;

  bool operator==(const GrantedMount&) const = default;
};

/// What of the machine goes into containers.
struct NodeParts {
  CdiSupport cdi = CdiSupport::kUnknown;
  std::string device_folder = "/dev";          ///< where the nodes are on the host
  std::vector<gpu::DeviceNode> control_nodes;  ///< go with every GPU
  std::vector<GrantedMount> driver_volume;     ///< it, and what lies in it; empty: none
};

struct ContainerGrant {
  std::map<std::string, std::string> environment;
  std::map<std::string, std::string> annotations;
  std::vector<GrantedMount> mounts;
  std::vector<GrantedPath> devices;  ///< for reading and writing
  std::vector<std::string> cdi_devices;

  bool operator==(const ContainerGrant&) const = default;
};

struct GrantedGpu {
  gpu::Device device;                  ///< or a MIG device
  std::vector<gpu::DeviceNode> nodes;  ///< its own
};

/// For a container whose GPU is shared by MPS: where the daemon is.
void add_mps(const share::MpsPlaces& places, ContainerGrant& grant);

/// The annotation by which the container runtime tells whose pages a container has (replica_pages.h). The
/// kubelet takes it from device plugins alone.
inline constexpr const char* kReplicaAnnotation = "drover.dev/replica";
/// For a container that is guarded: instead of the device of the GPU it gets the one of its pages.
void add_guard(const std::string& uuid, const std::string& pages, ContainerGrant& grant);

/// `unique` tells this container's annotation from those of others.
ContainerGrant grant(const std::vector<GrantedGpu>& gpus, const PluginConfig& config, const NodeParts& parts,
                     const std::string& unique);

}  // namespace drover::kube
