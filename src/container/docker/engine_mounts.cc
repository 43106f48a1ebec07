#include "container/docker/engine_mounts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <string_view>
#include <utility>

#include "container/environment.h"

namespace drover::container::docker {
namespace {

constexpr std::array<const char*, 3> kContainersOwn = {"/dev", "/proc", "/sys"};
constexpr std::array<const char*, 3> kEnginesOwn = {"/etc/hosts", "/etc/hostname", "/etc/resolv.conf"};

/// A place that something is mounted at.
struct Mount {
  std::string what;  ///< "the image's volume '/data'"
  std::string destination;
  ImagePath path;
  std::string problem_path;  ///< in the request
  bool users = false;        ///< its content is a user's
  std::string refusal;       ///< how a message about it begins
};

bool lies_below(const std::string& path, const std::string& folder) {
  return path != folder && is_within(path, folder);
}

/// Whether who goes there meets what is mounted at the real place `mounted`.
bool meets(const ImagePath& path, const std::string& mounted) {
  return path.real == mounted ||
         std::ranges::any_of(path.passed, [&](const auto& step) { return lies_below(step, mounted); });
}

Failure refuse(const Mount& mount, std::string_view why) {
  return fail(ErrorKind::kInvalid, fmt::format("{}: {}", mount.refusal, why),
              mount.problem_path.empty() ? "rebuild the image, or run it with '--containerizer oci'"
                                         : "choose another path in the container",
              mount.problem_path);
}

Result<Mount> walked(Mount mount, const MountCheck::Walk& walk) {
  DROVER_TRY(mount.path, walk(mount.destination));
  for (const std::string own : kContainersOwn)
    if (meets(mount.path, own) || is_within(own, mount.path.real))
      return refuse(mount, fmt::format("the image leads it to '{}', and '{}' is the container's own",
                                       mount.path.real, own));
  return mount;
}

Mount of_volume(const VolumePlan& volume, std::size_t index) {
  return {fmt::format("volume '{}'", volume.host_path),
          volume.destination,
          {},
          fmt::format("/volumes/{}/container_path", index),
          true,
          fmt::format("Volume '{}' cannot be mounted at '{}'", volume.host_path, volume.destination)};
}

Mount of_image(const WantedMounts& wanted, std::string what, std::string destination, bool users) {
  auto refusal = fmt::format("Image '{}' cannot have {} in a Docker Engine", wanted.image, what);
  return {std::move(what), std::move(destination), {}, "", users, std::move(refusal)};
}

/// All that the engine is asked to mount, and what it mounts by itself.
Result<std::vector<Mount>> all_mounts(const WantedMounts& wanted, const MountCheck::Walk& walk) {
  std::vector<Mount> mounts = {of_image(wanted, "the sandbox", kSandboxMount, true)};
  for (std::size_t i = 0; i < wanted.volumes.size(); ++i)
    if (!inner_place(wanted.volumes, i)) mounts.push_back(of_volume(wanted.volumes[i], i));
  if (wanted.driver_volume)
    mounts.push_back(of_image(wanted, "the driver volume", *wanted.driver_volume, false));
  if (wanted.mps) mounts.push_back(of_image(wanted, "the pipes of MPS", *wanted.mps, false));
  for (const auto& place : wanted.image_volumes)
    mounts.push_back(of_image(wanted, fmt::format("its volume '{}'", place), plain_path(place), false));
  for (auto& mount : mounts) {
    DROVER_TRY(mount, walked(std::move(mount), walk));
  }
  for (const auto* file : kEnginesOwn) {
    auto mount = of_image(wanted, fmt::format("the engine's own '{}'", file), file, false);
    DROVER_TRY(mount.path, walk(file));
    mounts.push_back(std::move(mount));
  }
  return mounts;
}

}  // namespace

std::optional<InnerPlace> inner_place(const std::vector<VolumePlan>& volumes, std::size_t index) {
  const auto& destination = volumes[index].destination;
  std::string outer, source;
  const auto consider = [&](const std::string& folder, std::string name) {
    if (!lies_below(destination, folder) || (!outer.empty() && folder.size() >= outer.size())) return;
    outer = folder;
    source = std::move(name);
  };
  consider(kSandboxMount, kSandboxSource);
  for (std::size_t i = 0; i < volumes.size(); ++i) consider(volumes[i].destination, std::to_string(i));
  if (outer.empty()) return std::nullopt;
  return InnerPlace{source, destination.substr(outer.size() + 1)};
}

std::vector<std::size_t> mounting_order(const std::vector<VolumePlan>& volumes) {
  std::vector<std::size_t> order(volumes.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, [&](std::size_t i) { return std::pair(volumes[i].destination.size(), i); });
  return order;
}

Result<MountCheck> MountCheck::make(const WantedMounts& wanted, const Walk& walk) {
  for (const std::string own : kContainersOwn) {
    DROVER_TRY(const auto path, walk(own));
    if (path.real != own)
      return fail(ErrorKind::kInvalid,
                  fmt::format("Image '{}' cannot run in a Docker Engine: its '{}' is a symbolic link",
                              wanted.image, own),
                  "rebuild the image, or run it with '--containerizer oci'");
  }
  for (std::size_t i = 0; i < wanted.volumes.size(); ++i)
    for (std::size_t before = 0; before < i; ++before)
      if (wanted.volumes[before].destination == wanted.volumes[i].destination)
        return refuse(of_volume(wanted.volumes[i], i),
                      fmt::format("volume '{}' is there", wanted.volumes[before].host_path));
  DROVER_TRY(const auto mounts, all_mounts(wanted, walk));
  MountCheck check;
  for (const auto& mount : mounts) {
    if (!mount.users) continue;
    check.taken_.push_back(mount.path.real);
    for (const auto& other : mounts)
      // At the very same path the engine has its own give way.
      if (other.destination != mount.destination && meets(other.path, mount.path.real)) {
        const bool blame_other = !other.problem_path.empty() && mount.problem_path.empty();
        return blame_other ? refuse(other, fmt::format("the image leads it into {}", mount.what))
                           : refuse(mount, fmt::format("{} would be mounted in it", other.what));
      }
  }
  return check;
}

bool MountCheck::stays_in_image(const ImagePath& path) const {
  return std::ranges::none_of(taken_, [&](const auto& place) { return meets(path, place); }) &&
         std::ranges::none_of(kContainersOwn, [&](const char* own) { return meets(path, own); });
}

}  // namespace drover::container::docker
