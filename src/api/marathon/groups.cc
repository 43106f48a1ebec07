// Groups of apps, to read.

#include <algorithm>
#include <nlohmann/json.hpp>

#include "api/marathon/answers.h"
#include "api/marathon/handlers.h"
#include "api/marathon/views.h"
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
  embed.app = Embed::of(names, "group.apps.");
  embed.app.counts = any("group.apps.counts");
  embed.app.deployments = any("group.apps.deployments");
  return embed;
}

Answer show(const Services& services, const Request& request, const std::string& id) {
  const World world(services, *request.caller);
  if (!world.has_group(id)) return refuse(services, 404, "Group '" + id + "' does not exist");
  return answer(services, group_text(world, id, group_embed(request)));
}

/// The id in the path; the root where there is none.
std::string id_of(const Request& request) {
  const auto found = request.parameters.find("id");
  return found == request.parameters.end() ? "/" : marathon::absolute_path(found->second);
}

}  // namespace

Answer get_root_group(const Services& services, const Request& request) {
  return show(services, request, "/");
}

Answer get_group(const Services& services, const Request& request) {
  return show(services, request, id_of(request));
}

Answer list_group_apps(const Services& services, const Request& request) {
  const World world(services, *request.caller);
  const auto id = id_of(request);
  if (!world.has_group(id)) return refuse(services, 404, "Group '" + id + "' does not exist");
  const auto embed = Embed::of(values(request, "embed"), "group.apps.");
  std::string text = R"({"apps":[)";
  const char* comma = "";
  for (const auto* record : world.services(id)) {
    text += comma + app_text(world, *record, embed);
    comma = ",";
  }
  return answer(services, text + "]}");
}

Answer list_group_versions(const Services& services, const Request& request) {
  const World world(services, *request.caller);
  const auto id = id_of(request);
  if (!world.has_group(id)) return refuse(services, 404, "Group '" + id + "' does not exist");
  std::set<TimePoint, std::greater<>> versions = {group_version(world, id)};
  for (const auto* record : world.services(id)) {
    versions.insert(record->target.version);
    for (const auto& service : record->versions) versions.insert(service.version);
  }
  nlohmann::json times = nlohmann::json::array();
  for (const auto version : versions) times.push_back(format_time(version));
  return answer(services, dumped(times));
}

Answer get_group_version(const Services& services, const Request& request) {
  const World world(services, *request.caller);
  const auto id = id_of(request);
  const auto& version = request.parameters.at("version");
  const auto time = parse_time(version);
  if (!world.has_group(id) || !time || *time != group_version(world, id))
    return refuse(services, 404, "Group '" + id + "' does not exist in version " + version);
  return answer(services, group_text(world, id, group_embed(request)));
}

}  // namespace drover::api::marathon_v2
