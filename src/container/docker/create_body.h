#pragma once

// From a launch to the body of POST /containers/create. Pure: what the machine is like comes in as facts.
// Thread safe.

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/users.h"
#include "container/containerizer.h"
#include "container/launch_spec.h"
#include "container/volume_plan.h"
#include "image/image.h"

namespace drover::container::docker {

// By these labels Drover finds its containers again.
inline constexpr const char* kTaskLabel = "drover.task";
inline constexpr const char* kAttemptLabel = "drover.attempt";
inline constexpr const char* kStateLabel =
    "drover.state";  ///< the state folder: several daemons may share an engine

struct BodyFacts {
  std::string image_id;       ///< what was looked at is what is started, whatever the name means by then
  std::string state;          ///< the daemon's state folder
  std::string sandbox;        ///< on the host, absolute
  std::string init;           ///< on the host: see place_init()
  std::string entered = "/";  ///< by the engine, as root: nothing that a user could lead elsewhere
  std::string device_folder;  ///< where node n of device_nodes_of() lies as "<n>"
  std::vector<HostMount> driver_volume;  ///< when this container gets it
  std::vector<HostMount> share_pages;    ///< when it gets that, and is held to shares
  bool compat = true;                    ///< check_driver
  User user;                             ///< in the container's own terms
  std::vector<VolumePlan> volumes;
  std::string volume_folder;  ///< where expose_volumes() mounts them, and the sandbox
  std::string cpuset;         ///< CPUs that it is pinned to: "0-3,8"; "" when it floats
  bool limit_swap = false;    ///< the kernel can
  std::uint64_t machine_memory_bytes = 0;
  int oom_score_adj = 0;  ///< as launcher.h has it; a task never gets a lower one than 0
  LogLimits logs;         ///< of what the engine keeps beside the sandbox
};

/// The device nodes of the container: its GPUs, and with them the control devices. None without GPUs.
std::vector<gpu::DeviceNode> device_nodes_of(const Launch& launch);

/// kInvalid when there is nothing to run.
Result<nlohmann::json> make_create_body(const Launch& launch, const image::Image& image,
                                        const BodyFacts& facts);

}  // namespace drover::container::docker
