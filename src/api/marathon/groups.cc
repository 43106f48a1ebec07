// Groups of apps, to read.

#include <algorithm>
#include <nlohmann/json.hpp>

#include "api/marathon/answers.h"
#include "api/marathon/handlers.h"
#include "api/marathon/views.h"
#include "base/instant.h"
#include "base/json_text.h"
#include "marathon/path.h"

namespace drover::api::marathon_v2 {
namespace {

GroupEmbed group_embed(const Request& request) {
  const auto names = values(request, "embed");
  GroupEmbed embed;
  if (names.empty()) return embed;
  const auto any = [&](std::string_view what) {
    return std::ranges::any_of(names, [&](const auto& name) { return name.starts_with(what); });
  };
  embed.apps = any("group.apps");
  embed.groups = any("group.groups");
  embed.app = Embed::of_group(names);
  embed.app.counts = any("group.apps.counts");
  embed.app.deployments = any("group.apps.deployments");
  return embed;
}

/// The id in the path; the root where there is none.
std::string id_of(const Request& request) {
  const auto found = request.parameters.find("id");
  return found == request.parameters.end() ? "/" : marathon::absolute_path(found->second);
}

Answer show(const Services& services, const Request& request, const World& world) {
  const auto id = id_of(request);
  if (!world.has_group(id)) return refuse(services, 404, "Group '" + id + "' does not exist");
  return answer(services, group_text(world, id, group_embed(request)));
}

Answer show_apps(const Services& services, const Request& request, const World& world) {
  const auto id = id_of(request);
  if (!world.has_group(id)) return refuse(services, 404, "Group '" + id + "' does not exist");
  const auto embed = Embed::of_group(values(request, "embed"));
  return answer(services, apps_text(world, world.services(id), embed, "apps"));
}

Answer show_versions(const Services& services, const Request& request, const World& world) {
  const auto id = id_of(request);
  if (!world.has_group(id)) return refuse(services, 404, "Group '" + id + "' does not exist");
  nlohmann::json times = nlohmann::json::array();
  for (const auto version : group_versions(world, id)) times.push_back(format_time(version));
  return answer(services, to_text(times));
}

Answer show_version(const Services& services, const Request& request, const World& world) {
  const auto id = id_of(request);
  const auto& version = request.parameters.at("version");
  const auto time = parse_instant(version);
  if (!world.has_group(id) || !time || std::ranges::count(group_versions(world, id), *time) == 0)
    return refuse(services, 404, "Group '" + id + "' does not exist in version " + version);
  auto embed = group_embed(request);
  embed.at = *time;
  return answer(services, group_text(world, id, embed));
}

}  // namespace

AnswerBeside get_group(const Services& services, const Request& request) {
  // Instances are shown only where something of the apps is to be embedded.
  const auto scope = values(request, "embed").empty() ? Scope::kSome : Scope::kAll;
  return beside_of(services, request, scope, show);
}

AnswerBeside list_group_apps(const Services& services, const Request& request) {
  return beside_of(services, request, Scope::kAll, show_apps);
}

AnswerBeside list_group_versions(const Services& services, const Request& request) {
  return beside_of(services, request, Scope::kSome, show_versions);
}

AnswerBeside get_group_version(const Services& services, const Request& request) {
  return beside_of(services, request, Scope::kSome, show_version);
}

}  // namespace drover::api::marathon_v2
