// Apps and their versions, to read.

#include <nlohmann/json.hpp>

#include "api/marathon/answers.h"
#include "api/marathon/handlers.h"
#include "api/marathon/label_selector.h"
#include "api/marathon/views.h"
#include "base/json_text.h"
#include "base/text.h"
#include "marathon/app.h"
#include "marathon/path.h"

namespace drover::api::marathon_v2 {
namespace {

using control::ServiceRecord;

bool contains(const std::string& text, const std::string& part) {
  return lower(text).find(lower(part)) != std::string::npos;
}

std::string query(const Request& request, const std::string& name) {
  const auto found = request.query.find(name);
  return found == request.query.end() ? "" : found->second;
}

/// The words of the command, without the shell that reads a line.
std::string command_of(const ServiceRecord& record) {
  const auto& task = record.target.task;
  if (task.bypass_entrypoint) return task.command.empty() ? "" : task.command->back();
  std::string text;
  for (const auto& word : task.command) text += word + " ";
  return text;
}

Answer write_apps(const Services& services, const Request& request, const World& world) {
  const auto rules = parse_label_selector(query(request, "label"));
  if (!rules)
    return refuse(services, Refusal{422, "Object is not valid", {{"/label", {rules.error().message}}}, ""});
  const auto id = query(request, "id");
  const auto cmd = query(request, "cmd");
  auto records = world.services();
  std::erase_if(records, [&](const ServiceRecord* record) {
    return (!id.empty() && !contains(record->target.id, id)) ||
           (!cmd.empty() && !contains(command_of(*record), cmd)) ||
           !matches(*rules, record->target.task.labels);
  });
  const auto embed = Embed::of_apps(values(request, "embed"));
  return answer(services, apps_text(world, records, embed, "apps"));
}

Answer write_app_or_apps(const Services& services, const Request& request, const World& world) {
  const auto& given = request.parameters.at("id");
  auto embed = Embed::of_apps(values(request, "embed"));
  if (const auto group = group_of(given)) {
    if (!world.has_group(*group)) return refuse(services, 404, "Group '" + *group + "' does not exist");
    return answer(services, apps_text(world, world.services(*group), embed, "*"));
  }
  const auto id = marathon::absolute_path(given);
  const auto* record = world.service(id);
  if (record == nullptr) return refuse(services, 404, "App '" + id + "' does not exist");
  embed.tasks = embed.last_failure = true;
  return answer(services, R"({"app":)" + app_text(world, *record, embed) + "}");
}

}  // namespace

AnswerBeside list_apps(const Services& services, const Request& request) {
  return beside_of(services, request, Scope::kAll, write_apps);
}

AnswerBeside get_app(const Services& services, const Request& request) {
  if (marathon::absolute_path(request.parameters.at("id")) == "/") return list_apps(services, request);
  return beside_of(services, request, Scope::kSome, write_app_or_apps);
}

Answer list_versions(const Services& services, const Request& request) {
  const World world(services, *request.caller);
  const auto id = marathon::absolute_path(request.parameters.at("id"));
  const auto* record = world.service(id);
  if (record == nullptr) return refuse(services, 404, "App '" + id + "' does not exist");
  nlohmann::json versions = {format_time(record->target.version)};
  for (const auto& service : record->versions) versions.push_back(format_time(service.version));
  return answer(services, to_text(nlohmann::json{{"versions", std::move(versions)}}));
}

Answer get_version(const Services& services, const Request& request) {
  const World world(services, *request.caller);
  const auto id = marathon::absolute_path(request.parameters.at("id"));
  const auto& version = request.parameters.at("version");
  const auto* record = world.service(id);
  if (record == nullptr) return refuse(services, 404, "App '" + id + "' does not exist");
  const auto* service = version_of(*record, version);
  if (service == nullptr)
    return refuse(services, 404, "App '" + id + "' does not exist in version " + version);
  return answer(services, marathon::show(*service));
}

}  // namespace drover::api::marathon_v2
