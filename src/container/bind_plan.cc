#include "container/bind_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "container/own_places.h"
#include "container/volume_plan.h"

namespace drover::container {
namespace {

using nlohmann::json;

/// What the runtime mounts, before anything of a task runs. In /dev, which is made before it, devices have
/// their places.
bool is_the_runtimes(const std::string& path) {
  const auto holds = [&](const std::string& own) {
    return own == "/dev" ? path == own : is_within(path, own);
  };
  return std::ranges::any_of(kOwnPlaces, holds) || std::ranges::any_of(kOwnDevicePlaces, holds);
}

std::vector<std::string> options_of(const json& mount) {
  const auto options = mount.find("options");
  return options == mount.end() ? std::vector<std::string>{} : options->get<std::vector<std::string>>();
}

bool is_bind(const json& mount) {
  const auto options = options_of(mount);
  return mount.value("type", "") == "bind" || std::ranges::any_of(options, [](const auto& option) {
           return option == "bind" || option == "rbind";
         });
}

Failure unsupported(std::string what) {
  return fail(ErrorKind::kUnsupported, std::move(what), "its CDI specification must be changed");
}

}  // namespace

Result<std::vector<BindPlan>> take_binds(json& configuration) {
  std::vector<BindPlan> binds;
  auto kept = json::array();
  for (auto& mount : configuration["mounts"]) {
    const auto destination = plain_path(mount["destination"].get<std::string>());
    if (is_the_runtimes(destination)) {
      kept.push_back(std::move(mount));
    } else if (is_bind(mount)) {
      binds.push_back({mount["source"], destination, options_of(mount)});
    } else {
      return unsupported(
          fmt::format("A device wants a mount of type '{}' at '{}'", mount.value("type", ""), destination));
    }
  }
  configuration["mounts"] = std::move(kept);
  return binds;
}

Status check_mounts(const cdi::Edits& devices) {
  for (const auto& mount : devices.mounts) {
    const auto place = plain_path(mount.container_path);
    if (place == "/" || std::ranges::find(kOwnPlaces, place) != kOwnPlaces.end())
      return unsupported(
          fmt::format("A device wants to mount '{}' over '{}', which each container has of its own",
                      mount.host_path, place));
  }
  return {};
}

}  // namespace drover::container
