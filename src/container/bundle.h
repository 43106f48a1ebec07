#pragma once

// From a launch to the OCI runtime specification (1.0.2) of its container. Pure: what the machine is like
// comes in as facts. Thread safe.

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/users.h"
#include "container/bind_plan.h"
#include "container/containerizer.h"
#include "container/device_plan.h"
#include "container/id_map.h"
#include "container/security_modules.h"
#include "image/image.h"

namespace drover::container {

/// What the specification depends on besides the launch.
struct BundleFacts {
  std::string root;                          ///< where the root file system will be mounted, absolute
  std::string sandbox;                       ///< on the host, absolute
  std::string init;                          ///< on the host: see place_init()
  std::string filter;                        ///< on the host: see place_filters()
  std::string cgroup;                        ///< "/drover/<id>"
  std::vector<HostMount> driver_volume;      ///< when this container gets it (gets_driver_volume)
  cdi::Edits driver_files;                   ///< when this container gets them (gets_driver_files)
  std::vector<HostMount> guard;              ///< when it is held to shares (is_guarded): its pages, and more
  bool compat = true;                        ///< the image's forward compatibility package comes before that
  IdMap ids;                                 ///< of the machine, for those of the container
  User user;                                 ///< whom the first process runs as, in the container's own terms
  std::vector<HostMount> files;              ///< single files, shown read-only: /etc/resolv.conf …
  std::string apparmor_profile;              ///< that is loaded; "": none
  std::optional<SelinuxLabels> selinux;      ///< of a container with an image
  std::string network;                       ///< path of its network namespace; "": the machine's own
  bool cgroup_v2 = false;                    ///< nothing but version 2: then the task sees only its own group
  bool limit_swap = false;                   ///< the kernel can
  std::string cpuset;                        ///< CPUs that it is pinned to: "0-3,8"; "" when it floats
  std::vector<std::string> thermal_folders;  ///< see hidden_paths.h
  std::uint64_t machine_memory_bytes = 0;    ///< 0: unknown
  int oom_score_adj = 0;                     ///< as launcher.h has it; a task never gets a lower one than 0
};

/// How the container calls itself: on the machine's network as the machine, which others can resolve (none);
/// on one of its own by the head of its id.
std::optional<std::string> hostname_of(const workload::Task& task);

/// The task's, the image's, or the sandbox. kInvalid when it is not absolute.
Result<std::string> working_directory_of(const workload::Task& task, const image::Image* image,
                                         const std::string& sandbox_on_host);

/// The argument vector: as Docker does it, a task's command replaces the image's command but not its
/// entrypoint. kInvalid when there is nothing to run.
Result<std::vector<std::string>> arguments_of(const workload::Task& task, const image::Image* image);

/// A container, of which the runtime makes what only it can, in folders that nobody else has touched.
struct Specification {
  std::string configuration;    ///< of the OCI runtime: its config.json
  std::vector<BindPlan> binds;  ///< mounted before it, in this order; then the sandbox, then volumes
  std::vector<DevicePlan> devices;
};

/// The same configuration for a container whose ids are the machine's.
std::string without_ids(const std::string& configuration);

/// `image` is null for an image-less task.
Result<Specification> make_specification(const Launch& launch, const image::Image* image,
                                         const BundleFacts& facts);

}  // namespace drover::container
