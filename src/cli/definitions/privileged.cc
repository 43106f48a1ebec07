#include "cli/definitions/privileged.h"

#include <fmt/format.h>

namespace drover::cli {
namespace {

using nlohmann::json;

/// The part of an object; null when there is none.
const json& part(const json& value, const char* name) {
  static const json none;
  const auto found = value.is_object() ? value.find(name) : value.end();
  return value.is_object() && found != value.end() ? *found : none;
}

PrivilegedContainer found(std::string path, bool possible) {
  if (possible)
    return {std::move(path), false, "a daemon refuses it that was not started with --allow-privileged",
            "leave it out where that is not so: a task has its own GPUs without it"};
  return {std::move(path), true, "Only containers of a Docker Engine can be privileged",
          "name an image, and no other container type than DOCKER"};
}

void look_at_app(const json& app, const std::string& path, std::vector<PrivilegedContainer>& all) {
  const auto& container = part(app, "container");
  const auto& docker = part(container, "docker");
  if (part(docker, "privileged") == true)
    all.push_back(found(path + "/container/docker/privileged", part(container, "type") != "MESOS"));
}

void look_at_group(const json& group, const std::string& path, std::vector<PrivilegedContainer>& all) {
  const auto each = [&](const char* name, auto look) {
    const auto& list = part(group, name);
    for (std::size_t i = 0; list.is_array() && i < list.size(); ++i)
      look(list[i], fmt::format("{}/{}({})", path, name, i), all);
  };
  each("apps", look_at_app);
  each("groups", look_at_group);
}

void look_at_task(const json& task, const json& common, const std::string& path,
                  std::vector<PrivilegedContainer>& all) {
  if (part(task, "privileged") != true) return;
  const auto says = [&](const char* name) -> const json& {
    return part(task, name).is_null() ? part(common, name) : part(task, name);
  };
  const auto& type = says("container_type");
  const bool possible = !says("image").is_null() && type != "mesos" && type != "oci";
  all.push_back(found(path + "/privileged", possible));
}

}  // namespace

std::vector<PrivilegedContainer> privileged_containers(DefinitionKind kind, const json& value) {
  std::vector<PrivilegedContainer> all;
  if (kind == DefinitionKind::kApp) look_at_app(value, "", all);
  if (kind == DefinitionKind::kGroup) look_at_group(value, "", all);
  if (!runs_once(kind)) return all;
  look_at_task(value, value, "", all);
  const auto& members = part(part(value, "gang"), "members");
  for (std::size_t rank = 0; members.is_array() && rank < members.size(); ++rank)
    look_at_task(members[rank], value, fmt::format("/gang/members/{}", rank), all);
  return all;
}

}  // namespace drover::cli
