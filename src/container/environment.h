#pragma once

// The environment of a task's first process. Pure; thread safe.

#include <map>
#include <string>
#include <vector>

#include "base/users.h"
#include "container/containerizer.h"
#include "image/image.h"

namespace drover::container {

/// Where an image task finds its sandbox, as in Mesos. An image-less task finds it at its place on the host.
inline constexpr const char* kSandboxMount = "/mnt/mesos/sandbox";

/// The sandbox as the task sees it; `image` is null for an image-less task.
std::string sandbox_inside(const image::Image* image, const std::string& sandbox_on_host);

/// Whether the driver volume belongs in this container: GPUs were given, there is a volume, and the image
/// asks.
bool gets_driver_volume(const Launch& launch, const image::Image* image);

/// Whether the driver's files belong in this container at their own paths, as a CDI device brings them: GPUs
/// were given, it has a root of its own, and it is not to be left as it is. Without an image the host's
/// are there anyway.
bool gets_driver_files(const Launch& launch, const image::Image* image);
/// Whether it gets the pages that hold it to its shares: only beside a driver with the guard before it.
bool is_guarded(const Launch& launch, const image::Image* image);

/// RANK, WORLD_SIZE and the like: what the member of a gang finds the others by.
std::map<std::string, std::string> gang_environment(const GangPlace& gang);

/// What only Drover can know: no image, no task and no device sets these.
std::map<std::string, std::string> own_environment(const Launch& launch, const image::Image* image,
                                                   const std::string& sandbox_on_host);

/// "NAME=value", sorted by name. Later sources win: defaults, the image's, the gang's (RANK …), the task's,
/// the driver volume's paths (added, not replaced), and last, always, what isolation rests on and what only
/// Drover knows: NVIDIA_VISIBLE_DEVICES names the GPUs that the task owns, or "void", whatever image or task
/// say; DROVER_… tell of its gang, its shares and its network cards. `compat`: as driver::volume_environment.
std::vector<std::string> environment_of(const Launch& launch, const image::Image* image, const User& user,
                                        const std::string& sandbox_on_host, bool compat = true);

}  // namespace drover::container
