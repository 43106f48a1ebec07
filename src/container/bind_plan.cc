#include "container/bind_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "container/volume_plan.h"

namespace drover::container {
namespace {

using nlohmann::json;

/// What the runtime mounts or makes before anything else is there, and nobody can cover.
bool is_the_containers_own(const std::string& path) {
  return std::ranges::any_of(std::array{"/dev", "/proc", "/sys"},
                             [plain = plain_path(path)](const char* own) { return is_within(plain, own); });
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
  for (const auto& device : configuration["linux"]["devices"])
    if (const auto path = device["path"].get<std::string>(); !is_within(plain_path(path), "/dev"))
      return unsupported(fmt::format("A device wants a node at '{}', outside of /dev", path));
  std::vector<BindPlan> binds;
  auto kept = json::array();
  for (auto& mount : configuration["mounts"]) {
    auto destination = mount["destination"].get<std::string>();
    if (is_the_containers_own(destination)) {
      kept.push_back(std::move(mount));
    } else if (is_bind(mount)) {
      binds.push_back({mount["source"], plain_path(destination), options_of(mount)});
    } else {
      return unsupported(
          fmt::format("A device wants a mount of type '{}' at '{}'", mount.value("type", ""), destination));
    }
  }
  configuration["mounts"] = std::move(kept);
  return binds;
}

}  // namespace drover::container
