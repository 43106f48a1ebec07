#include "container/volume_plan.h"

#include <fmt/format.h>

#include <filesystem>

#include "container/environment.h"
#include "container/fetch/source.h"
#include "container/own_places.h"
#include "driver/guard.h"

namespace drover::container {
namespace {

Failure refusal(std::size_t index, const workload::Volume& volume, std::string_view why, std::string hint) {
  return fail(
      ErrorKind::kInvalid,
      fmt::format("Volume '{}' cannot be mounted at '{}': {}", volume.host_path, volume.container_path, why),
      std::move(hint), fmt::format("/volumes/{}/container_path", index));
}

/// What must not be covered, nor be mounted into.
std::vector<std::string> kept_free(const Launch& launch, const image::Image* image) {
  std::vector<std::string> places(kOwnPlaces.begin(), kOwnPlaces.end());
  if (image == nullptr && is_guarded(launch, image)) {
    places.push_back(driver::kGuardOnHost);
    for (const auto& cover : launch.driver.on_host) places.push_back(cover.destination);
  } else if (gets_driver_volume(launch, image) || is_guarded(launch, image)) {
    places.emplace_back(driver::kContainerFolder);
  }
  if (launch.mps) places.emplace_back(kMpsInTask);
  return places;
}

}  // namespace

std::string plain_path(const std::string& path) {
  auto plain = std::filesystem::path(path).lexically_normal().string();
  while (plain.size() > 1 && plain.back() == '/') plain.pop_back();
  return plain.starts_with("//") ? plain.substr(1) : plain;
}

bool is_within(const std::string& path, const std::string& folder) {
  return path == folder || folder == "/" || path.starts_with(folder + "/");
}

Result<std::vector<VolumePlan>> plan_volumes(const Launch& launch, const image::Image* image,
                                             const std::string& sandbox_on_host) {
  const auto sandbox = sandbox_inside(image, sandbox_on_host);
  std::vector<VolumePlan> plans;
  for (std::size_t i = 0; i < launch.task.volumes.size(); ++i) {
    const auto& volume = launch.task.volumes[i];
    VolumePlan plan{volume.host_path, "", "", volume.read_only, launch.task.privileged};
    const bool absolute = volume.container_path.starts_with('/');
    plan.destination = plain_path(absolute ? volume.container_path : sandbox + "/" + volume.container_path);
    if (is_within(plan.destination, sandbox) && plan.destination != sandbox) {
      const auto inner = inner_path(plan.destination.substr(sandbox.size() + 1));
      if (!inner) return refusal(i, volume, inner.error().message, "");
      plan.sandbox_path = *inner;
    }
    if (is_within(sandbox, plan.destination))
      return refusal(i, volume, "it would cover the sandbox", "choose another path in the container");
    for (const auto& place : kept_free(launch, image))
      if (is_within(plan.destination, place) || is_within(place, plan.destination))
        return refusal(i, volume, fmt::format("'{}' is the container's own", place),
                       "choose another path in the container");
    plans.push_back(std::move(plan));
  }
  return plans;
}

}  // namespace drover::container
