#pragma once

// Which mounts an engine is trusted with. Its runtime makes missing places of mounts as root, and follows
// links on the way there: so it must meet nothing but the image, which nobody changes meanwhile. What lies in
// the sandbox or in another volume is mounted there before, by the shim. Pure; thread safe.

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "container/docker/image_path.h"
#include "container/volume_plan.h"

namespace drover::container::docker {

/// The sandbox, beside the volumes' numbers in a task's folder of volumes.
inline constexpr const char* kSandboxSource = "sandbox";

/// Where the shim mounts a volume itself.
struct InnerPlace {
  std::string source;  ///< the outermost mount that it lies in: kSandboxSource, or the number of a volume
  std::string path;    ///< below that, without a '/' in front

  bool operator==(const InnerPlace&) const = default;
};
/// nullopt for a volume that lies in nothing but the image: then the engine mounts it.
std::optional<InnerPlace> inner_place(const std::vector<VolumePlan>& volumes, std::size_t index);

/// The numbers of all volumes, in the order of mounting: no volume comes before one that it lies in.
std::vector<std::size_t> mounting_order(const std::vector<VolumePlan>& volumes);

struct WantedMounts {
  std::vector<VolumePlan> volumes;
  std::vector<std::string> image_volumes;    ///< that the image declares, absolute; the engine makes them
  std::optional<std::string> driver_volume;  ///< its place
  std::string image;                         ///< its name, for messages
  std::optional<std::string> mps = {};       ///< the place of an MPS daemon's pipes
};

/// The places of a task's mounts in an image, found good.
class MountCheck {
 public:
  using Walk = std::function<Result<ImagePath>(const std::string& path)>;

  /// `walk` follows a path in the image. kInvalid for what would have the engine make something in a volume,
  /// in the sandbox, or in the container's own /dev, /proc or /sys.
  static Result<MountCheck> make(const WantedMounts& wanted, const Walk& walk);

  /// Whether a path leads through the image alone, so that the engine may make and enter it.
  bool stays_in_image(const ImagePath& path) const;

 private:
  std::vector<std::string> taken_;  ///< real places of the sandbox and the volumes
};

}  // namespace drover::container::docker
