#pragma once

// When a container gets the driver volume, and what its environment needs then: the rules of Mesos
// (src/slave/containerizer/mesos/isolators/gpu/volume.cpp), as images are built for them. Pure.

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace drover::driver {

/// In the image's order, as image::Config::environment.
using Environment = std::vector<std::pair<std::string, std::string>>;

/// The first NVIDIA_VISIBLE_DEVICES of the image decides: "" and "void" say no, anything else yes. Without
/// one, the label com.nvidia.volumes.needed does, whatever its value.
bool wants_volume(const Environment& environment, const std::map<std::string, std::string>& labels);

/// PATH and LD_LIBRARY_PATH with the volume's folders behind what `environment` has. An image without PATH
/// gets the usual one first: the volume's programs alone would hide even the shell. `compat`: CUDA's forward
/// compatibility package, if the image has it, comes before the volume (match.h: uses_compat). `first`: the
/// volume's libraries before all that the image names, as a guard must be (guard.h).
std::map<std::string, std::string> volume_environment(const Environment& environment, bool compat = true,
                                                      bool first = false);

}  // namespace drover::driver
