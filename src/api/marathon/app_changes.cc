// Apps, to change.

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "api/marathon/answers.h"
#include "api/marathon/changes.h"
#include "api/marathon/handlers.h"
#include "api/marathon/parts.h"
#include "api/marathon/views.h"
#include "base/json_writer.h"
#include "marathon/app.h"
#include "marathon/path.h"

namespace drover::api::marathon_v2 {

using control::ServiceRecord;
using marathon::App;
using nlohmann::json;

namespace {

constexpr std::size_t kMostAppsAtOnce = 5'000;

Response no_such_app(const Services& services, const std::string& id) {
  return refuse(services, 404, "App '" + id + "' does not exist");
}

/// The app as the body wants it, whatever id that has; `existing` is null when it is new.
Decoded<App> decode(const marathon::Options& options, const std::string& id, json body,
                    const ServiceRecord* existing, bool partial) {
  if (body.is_object()) body["id"] = id;
  if (existing != nullptr && partial) return update_app(existing->target, body, options);
  auto own_ports = existing == nullptr ? std::vector<int>{} : marathon::service_ports(existing->target);
  return marathon::decode_app(body, options, std::move(own_ports));
}

/// {"version": "…"} alone, or with the id: the definition of that time is wanted again.
std::optional<std::string> wanted_version(const json& body) {
  if (!body.is_object() || !body.contains("version") || body["version"].is_null()) return std::nullopt;
  return body["version"].is_string() ? body["version"].get<std::string>() : "";
}

bool says_only_version(const json& body) {
  return std::ranges::all_of(body.items(), [](const auto& field) {
    return field.key() == "version" || field.key() == "id" || field.value().is_null();
  });
}

std::map<std::string, TimePoint> versions_of(const World& world, const std::vector<App>& apps) {
  std::map<std::string, TimePoint> versions;
  for (const auto& app : apps)
    if (const auto* record = world.service(app.service.id)) versions[app.service.id] = record->target.version;
  return versions;
}

/// None of the new apps is inside of another one of them.
Status check_apart(const std::vector<App>& apps) {
  std::set<std::string> ids;
  for (const auto& app : apps) ids.insert(app.service.id);
  for (const auto& id : ids)
    for (auto above = marathon::parent_path(id); above != "/"; above = marathon::parent_path(above))
      if (ids.contains(above))
        return fail(ErrorKind::kInvalid, fmt::format("'{}' is an app, so nothing can be in it", above), "",
                    "/id");
  return {};
}

using AnswerOf = std::function<Response(const control::Made& deployment)>;

/// Carries the apps out as one deployment.
AnswerLater put(const Services& services, const Request& request, std::vector<App> apps, AnswerOf answer) {
  std::vector<std::optional<std::string>> names;
  for (const auto& app : apps) names.push_back(app.user);
  const auto before = versions_of(World(services, *request.caller), apps);
  const auto users = co_await find_users(services, request.caller->user.uid, std::move(names));
  std::shared_ptr<void> posting;
  co_return co_await transacted(services, [&]() -> Answer {
    const World world(services, *request.caller);
    if (versions_of(world, apps) != before)
      return refuse(services, 409, "The app was changed meanwhile: try again");
    control::event::ServicesChanged change;
    for (auto app : apps) {
      const auto* existing = world.service(app.service.id);
      if (existing == nullptr && world.is_taken(app.service.id)) return not_his(services);
      if (existing == nullptr)
        if (const auto place = check_place(world, app.service.id); !place)
          return refuse(services, place.error());
      if (const auto done = complete(world, app, existing, users); !done)
        return refuse(services, done.error());
      change.put.push_back(std::move(app.service));
    }
    change.force = is_forced(request, world, change);
    auto deployed = deploy(services, world, std::move(change));
    if (!deployed) return std::move(deployed.error());
    if (!apps.empty())
      posting = services.marathon->events.expect(
          {request.caller->user.uid, apps.front().service.id, deployed->version});
    return answer(*deployed);
  });
}

Response created(const Services& services, const Request& request, const std::string& id,
                 const control::Made& deployed) {
  const World world(services, *request.caller);
  const auto* record = world.service(id);
  if (record == nullptr) return deployment_result(services, deployed.id, deployed.version, 201);
  std::string text;
  JsonWriter writer(text);
  writer.begin_object();
  marathon::write_fields(writer, record->target);
  for (const auto* count : {"tasksStaged", "tasksRunning", "tasksHealthy", "tasksUnhealthy"})
    writer.field(count, 0);
  writer.field_raw("deployments", fmt::format(R"([{{"id":"{}"}}])", deployed.id));
  writer.field_raw("tasks", "[]");
  writer.end_object();
  auto response = answer(services, std::move(text), 201);
  response.headers.emplace_back("Location", "/v2/apps" + id);
  return with_deployment(std::move(response), deployed.id);
}

AnswerLater put_list(const Services& services, const Request& request, bool partial, bool may_create) {
  const auto body = body_of(request);
  if (!body) co_return refuse(services, body.error());
  marathon::Mistakes mistakes;
  if (!body->is_array()) {
    mistakes.wrong_type("/", "error.expected.jsarray");
    co_return refuse(services, mistakes.refusal());
  }
  if (body->size() > kMostAppsAtOnce) {
    mistakes.broken_rule("/", fmt::format("must have at most {} apps", kMostAppsAtOnce));
    co_return refuse(services, mistakes.refusal());
  }
  const World world(services, *request.caller);
  auto options = options_for(services);
  std::vector<App> apps;
  for (std::size_t i = 0; i < body->size(); ++i) {
    const auto& each = (*body)[i];
    const auto path = fmt::format("({})", i);
    if (!each.is_object() || !each.contains("id") || !each["id"].is_string()) {
      mistakes.wrong_type("/" + path + "/id", "error.path.missing");
      continue;
    }
    const auto id = marathon::absolute_path(each["id"].get<std::string>());
    const auto* existing = world.service(id);
    if (existing == nullptr && !may_create) co_return no_such_app(services, id);
    if (auto app = decode(options, id, each, existing, partial)) {
      for (const int port : marathon::service_ports(app->service)) options.service_ports.insert(port);
      apps.push_back(std::move(*app));
    } else {
      mistakes.add_part(app.error(), "/" + path);
    }
    if (std::ranges::count(apps, id, [](const App& app) { return app.service.id; }) > 1)
      mistakes.broken_rule("/" + path + "/id", "is there twice");
  }
  if (!mistakes.empty()) co_return refuse(services, mistakes.refusal());
  if (const auto apart = check_apart(apps); !apart) co_return refuse(services, apart.error());
  co_return co_await put(services, request, std::move(apps), [&](const auto& deployed) {
    return deployment_result(services, deployed.id, deployed.version);
  });
}

AnswerLater put_one(const Services& services, const Request& request, bool partial, bool may_create) {
  const auto id = marathon::absolute_path(request.parameters.at("id"));
  const auto body = body_of(request);
  if (!body) co_return refuse(services, body.error());
  const World world(services, *request.caller);
  const auto* existing = world.service(id);
  if (existing == nullptr && world.is_taken(id)) co_return not_his(services);
  if (existing == nullptr && !may_create) co_return no_such_app(services, id);
  Decoded<App> app;
  if (const auto version = wanted_version(*body)) {
    if (!says_only_version(*body))
      co_return refuse(services,
                       Refusal{422,
                               "Object is not valid",
                               {{"/", {"The 'version' field may only be combined with the 'id' field."}}},
                               ""});
    const auto* service = existing == nullptr ? nullptr : version_of(*existing, *version);
    if (service == nullptr)
      co_return refuse(services, 404, "App '" + id + "' does not exist in version " + *version);
    if (const auto allowed = check_definition(world, *service, existing->target); !allowed)
      co_return refuse(services, allowed.error());
    app = App{*service, marathon::user_of(*service)};
  } else {
    app = decode(options_for(services), id, *body, existing, partial);
  }
  if (!app) co_return refuse(services, app.error());
  const bool is_new = existing == nullptr;
  std::vector<App> apps;
  apps.push_back(std::move(*app));
  co_return co_await put(services, request, std::move(apps), [&](const auto& deployed) {
    auto response = deployment_result(services, deployed.id, deployed.version, is_new ? 201 : 200);
    if (is_new) response.headers.emplace_back("Location", "/v2/apps" + id);
    return response;
  });
}

}  // namespace

AnswerLater create_app(const Services& services, const Request& request) {
  const auto body = body_of(request);
  if (!body) co_return refuse(services, body.error());
  auto app = marathon::decode_app(*body, options_for(services));
  if (!app) co_return refuse(services, app.error());
  const auto id = app->service.id;
  if (World(services, *request.caller).is_taken(id))
    co_return refuse(services, 409, "An app with id [" + id + "] already exists.");
  std::vector<App> apps;
  apps.push_back(std::move(*app));
  co_return co_await put(services, request, std::move(apps),
                         [&](const auto& deployed) { return created(services, request, id, deployed); });
}

AnswerLater put_apps(const Services& services, const Request& request) {
  return put_list(services, request, flag(request, "partialUpdate", true), true);
}

AnswerLater patch_apps(const Services& services, const Request& request) {
  return put_list(services, request, true, false);
}

AnswerLater put_app(const Services& services, const Request& request) {
  return put_one(services, request, flag(request, "partialUpdate", true), true);
}

AnswerLater patch_app(const Services& services, const Request& request) {
  return put_one(services, request, true, false);
}

Answer delete_app(const Services& services, const Request& request) {
  const World world(services, *request.caller);
  const auto id = marathon::absolute_path(request.parameters.at("id"));
  if (world.service(id) == nullptr) return no_such_app(services, id);
  control::event::ServicesChanged change;
  change.removed = {id};
  change.force = is_forced(request, world, change, true);
  auto deployed = deploy(services, world, std::move(change));
  if (!deployed) return std::move(deployed.error());
  return deployment_result(services, deployed->id, deployed->version);
}

Answer restart_app(const Services& services, const Request& request) {
  const World world(services, *request.caller);
  const auto id = marathon::absolute_path(request.parameters.at("id"));
  const auto* record = world.service(id);
  if (record == nullptr) return no_such_app(services, id);
  control::event::ServicesChanged change;
  change.put = {record->target};
  change.restart = true;
  change.force = is_forced(request, world, change);
  auto deployed = deploy(services, world, std::move(change));
  if (!deployed) return std::move(deployed.error());
  return deployment_result(services, deployed->id, deployed->version);
}

}  // namespace drover::api::marathon_v2
