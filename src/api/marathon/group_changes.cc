// Groups of apps, to change.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "api/marathon/answers.h"
#include "api/marathon/changes.h"
#include "api/marathon/handlers.h"
#include "api/marathon/views.h"
#include "base/instant.h"
#include "base/json_text.h"
#include "control/controller.h"
#include "marathon/fields.h"
#include "marathon/group.h"
#include "marathon/path.h"

namespace drover::api::marathon_v2 {

using control::GroupRecord;
using nlohmann::json;

namespace {

using Change = control::event::ServicesChanged;
using Wanted = tl::expected<Change, Response>;

std::string base_of(const Request& request) {
  const auto found = request.parameters.find("id");
  return found == request.parameters.end() ? "/" : marathon::absolute_path(found->second);
}

bool owns(const World& world, const GroupRecord& group) {
  return world.caller().is_root() || group.owner == world.caller().user.uid;
}

marathon::GroupContents contents_of(const World& world, const std::string& id) {
  marathon::GroupContents contents;
  for (const auto* record : world.services(id)) contents.apps[record->target.id] = &record->target;
  for (const auto& [path, group] : world.state().groups)
    if (marathon::is_within(path, id)) contents.groups[path] = group.dependencies;
  return contents;
}

/// Of all that is in the group, itself included.
std::map<std::string, TimePoint> versions_in(const World& world, const std::string& id) {
  std::map<std::string, TimePoint> versions;
  for (const auto* record : world.services(id)) versions[record->target.id] = record->target.version;
  for (const auto& [path, group] : world.state().groups)
    if (marathon::is_within(path, id)) versions["group " + path] = group.version;
  return versions;
}

/// The groups as they are to be: those that are new or different, and those that go.
void change_groups(const World& world, const marathon::GroupChange& wanted, Change& change) {
  for (const auto& [path, dependencies] : wanted.groups) {
    const auto known = world.state().groups.find(path);
    const bool is_known = known != world.state().groups.end();
    if (path == "/" && dependencies.empty() && !is_known) continue;
    if (is_known && known->second.dependencies == dependencies) continue;
    change.groups[path] =
        GroupRecord{dependencies, {}, is_known ? known->second.owner : world.caller().user.uid};
  }
  for (const auto& [path, group] : world.state().groups)
    if (marathon::is_within(path, wanted.id) && !wanted.groups.contains(path) && owns(world, group))
      change.groups[path] = std::nullopt;
}

/// The apps that are kept depend on what their groups depend on now.
Status update_dependencies(const World& world, const marathon::GroupChange& wanted, Change& change) {
  for (const auto& id : wanted.kept) {
    const auto* existing = world.service(id);
    if (existing == nullptr) continue;  // gone while users were looked up
    marathon::App app{existing->target, marathon::user_of(existing->target)};
    app.service.dependencies = marathon::own_dependencies(app.service);
    DROVER_CHECK_OK(complete(world, app, existing, {}, wanted.groups));
    if (app.service.dependencies != existing->target.dependencies)
      change.put.push_back(std::move(app.service));
  }
  return {};
}

/// A group's definition, with what it was read for.
struct Definition {
  std::string id;
  marathon::GroupChange wanted;
  std::map<std::string, TimePoint> before;  ///< versions_in()
  Users users;
};

/// The event that brings the group about.
Wanted change_for(const Services& services, const World& world, const Definition& definition) {
  const auto& [id, wanted, before, users] = definition;
  if (versions_in(world, id) != before)
    return tl::unexpected(refuse(services, 409, "The group was changed meanwhile: try again"));
  for (const auto& [path, dependencies] : wanted.groups)
    if (const auto known = world.state().groups.find(path); known != world.state().groups.end() &&
                                                            known->second.dependencies != dependencies &&
                                                            !owns(world, known->second))
      return tl::unexpected(not_his(services));
  Change change;
  change_groups(world, wanted, change);
  std::set<std::string> stay = wanted.kept;
  for (auto app : wanted.apps) {
    const auto app_id = app.service.id;
    const auto* existing = world.service(app_id);
    if (existing == nullptr && world.is_taken(app_id)) return tl::unexpected(not_his(services));
    for (auto above = marathon::parent_path(app_id); above != "/"; above = marathon::parent_path(above))
      if (world.is_taken(above))
        return tl::unexpected(refuse(services, 409, "An app with the path " + above + " already exists."));
    if (const auto done = complete(world, app, existing, users, wanted.groups); !done)
      return tl::unexpected(refuse(services, done.error()));
    stay.insert(app_id);
    if (existing != nullptr && same_configuration(existing->target, app.service) &&
        existing->target.dependencies == app.service.dependencies &&
        existing->target.instances == app.service.instances)
      continue;
    change.put.push_back(std::move(app.service));
  }
  if (const auto done = update_dependencies(world, wanted, change); !done)
    return tl::unexpected(refuse(services, done.error()));
  for (const auto* record : world.services(id))
    if (!stay.contains(record->target.id)) change.removed.push_back(record->target.id);
  return change;
}

/// {"scaleBy": 2}: every app of the group has so many times as many instances.
Wanted scaled(const Services& services, const World& world, const std::string& id, double factor) {
  Change change;
  for (const auto* record : world.services(id)) {
    auto service = record->target;
    const auto instances = std::ceil(service.instances * factor);
    if (instances > marathon::kMostInstances)
      return tl::unexpected(refuse(services, Refusal{422,
                                                     "Object is not valid",
                                                     {{"/scaleBy",
                                                       {fmt::format("'{}' would have more than {} instances",
                                                                    service.id, marathon::kMostInstances)}}},
                                                     ""}));
    service.instances = static_cast<int>(instances);
    change.put.push_back(std::move(service));
  }
  return change;
}

/// {"version": …}: every app is what it was then; those that were not there yet go.
Wanted as_of(const Services& services, const World& world, const std::string& id,
             const std::string& version) {
  const auto time = parse_instant(version);
  if (!time)
    return tl::unexpected(refuse(services, 404, "Group '" + id + "' does not exist in version " + version));
  Change change;
  for (const auto* record : world.services(id)) {
    const auto* then = definition_at(*record, *time);
    if (then == nullptr)
      change.removed.push_back(record->target.id);
    else if (const auto allowed = check_definition(world, *then, record->target); !allowed)
      return tl::unexpected(refuse(services, allowed.error()));
    else if (then != &record->target)
      change.put.push_back(*then);
  }
  return change;
}

Response preview(const Services& services, const World& world, const Change& change) {
  const auto outcome = control::decide(world.state(), change, services.decisions->now());
  if (!outcome) return refuse(services, outcome.error());
  json steps = json::array();
  for (const auto& notice : outcome->notices)
    if (const auto* step = std::get_if<control::notice::DeploymentStep>(&notice)) {
      steps = steps_view(step->deployment.steps);
      break;
    }
  return answer(services, to_text(json{{"steps", std::move(steps)}}));
}

Answer carry_out(const Services& services, const Request& request, const World& world, Wanted wanted,
                 bool is_new, const std::string& id) {
  if (!wanted) return std::move(wanted.error());
  wanted->force = is_forced(request, world, *wanted);
  wanted->owner = request.caller->user.uid;
  if (flag(request, "dryRun")) return preview(services, world, *wanted);
  auto deployed = deploy(services, world, std::move(*wanted));
  if (!deployed) return std::move(deployed.error());
  auto response = deployment_result(services, deployed->id, deployed->version, is_new ? 201 : 200);
  if (is_new) response.headers.emplace_back("Location", "/v2/groups" + id);
  return response;
}

AnswerLater define(const Services& services, const Request& request, const std::string& id, const json& body,
                   bool is_new) {
  Definition definition{.id = id};
  {
    const World world(services, *request.caller);
    auto decoded = marathon::decode_group(id, body, contents_of(world, id), options_for(services));
    if (!decoded) co_return refuse(services, decoded.error());
    definition.wanted = std::move(*decoded);
    definition.before = versions_in(world, id);
  }
  std::vector<std::optional<std::string>> names;
  for (const auto& app : definition.wanted.apps) names.push_back(app.user);
  definition.users = co_await find_users(services, request.caller->user.uid, std::move(names));
  co_return co_await transacted(services, [&] {
    const World world(services, *request.caller);
    return carry_out(services, request, world, change_for(services, world, definition), is_new, id);
  });
}

/// The id that the body has, seen from that in the path.
std::string id_in(const json& body, const std::string& base) {
  if (!body.is_object() || !body.contains("id") || !body["id"].is_string()) return base;
  return marathon::absolute_path(body["id"].get<std::string>(), base);
}

}  // namespace

AnswerLater create_group(const Services& services, const Request& request) {
  const auto body = body_of(request);
  if (!body) co_return refuse(services, body.error());
  const auto id = id_in(*body, base_of(request));
  {
    const World world(services, *request.caller);
    if (world.is_taken(id))
      co_return refuse(services, 409, "An app with the path " + id + " already exists.");
    if (world.has_group(id))
      co_return refuse(services, 409, "Group " + id + " is already created. Use PUT to change this group.");
  }
  co_return co_await define(services, request, id, *body, true);
}

AnswerLater put_group(const Services& services, const Request& request) {
  const auto body = body_of(request);
  if (!body) co_return refuse(services, body.error());
  const auto id = id_in(*body, base_of(request));
  marathon::Mistakes mistakes;
  marathon::Fields fields(*body, mistakes);
  const auto factor = fields.number("scaleBy", 0, 1e6);
  const auto version = fields.text("version");
  (void)fields.text("id");  // read already; of another type it is a mistake
  if (!mistakes.empty()) co_return refuse(services, mistakes.refusal());
  if (World(services, *request.caller).is_taken(id))
    co_return refuse(services, 409, "An app with the path " + id + " already exists.");
  if (!factor && !version) co_return co_await define(services, request, id, *body, false);
  co_return co_await transacted(services, [&]() -> Answer {
    const World world(services, *request.caller);
    if (!world.has_group(id)) return refuse(services, 404, "Group '" + id + "' does not exist");
    auto wanted = factor ? scaled(services, world, id, *factor) : as_of(services, world, id, *version);
    return carry_out(services, request, world, std::move(wanted), false, id);
  });
}

Answer delete_group(const Services& services, const Request& request) {
  const World world(services, *request.caller);
  const auto id = base_of(request);
  if (!world.has_group(id)) return refuse(services, 404, "Group '" + id + "' does not exist");
  Change change;
  for (const auto* record : world.services(id)) change.removed.push_back(record->target.id);
  for (const auto& [path, group] : world.state().groups)
    if (marathon::is_within(path, id) && owns(world, group)) change.groups[path] = std::nullopt;
  change.force = is_forced(request, world, change);
  auto deployed = deploy(services, world, std::move(change));
  if (!deployed) return std::move(deployed.error());
  return deployment_result(services, deployed->id, deployed->version);
}

}  // namespace drover::api::marathon_v2
