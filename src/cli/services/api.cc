#include "cli/services/api.h"

#include <fmt/format.h>

#include "base/decode.h"
#include "marathon/path.h"

namespace drover::cli {

using nlohmann::json;

namespace {

std::vector<json> objects_in(json list) {
  std::vector<json> all;
  if (list.is_array())
    for (auto& each : list)
      if (each.is_object()) all.push_back(std::move(each));
  return all;
}

/// What is not there was meant as the one app of this name in a group, or as one that is nearly called so.
Error with_meant_app(Error error, const std::string& id, const std::set<std::string>& known) {
  const auto name = marathon::last_segment(id);
  std::vector<std::string> same;
  for (const auto& each : known)
    if (marathon::last_segment(each) == name) same.push_back(each);
  if (same.size() != 1) return with_nearest(std::move(error), id, known);
  error.hint = fmt::format("did you mean '{}'?", same.front());
  return error;
}

std::set<std::string> names_of(const Result<std::vector<json>>& all, const char* field) {
  std::set<std::string> names;
  if (all)
    for (const auto& each : *all) names.insert(each.value(field, ""));
  return names;
}

}  // namespace

Result<std::string> app_target(const std::string& id, const std::string& rest) {
  const auto absolute = marathon::absolute_path(id);
  const auto mistakes = marathon::app_path_mistakes(absolute);
  if (absolute == "/" || !mistakes.empty())
    return fail(
        ErrorKind::kInvalid,
        fmt::format("'{}' is not the id of an app{}", id, mistakes.empty() ? "" : ": it " + mistakes.front()),
        "it looks like /shop/web");
  return "/v2/apps" + absolute + rest;
}

std::string job_target(const std::string& name, const std::string& rest) {
  return "/v1/scheduler/job/" + percent_encode(name) + rest;
}

Result<json> get_app(const Client& client, const std::string& id) {
  DROVER_TRY(const auto target, app_target(id));
  auto answer = client.get(target);
  if (answer) return answer->value("app", json::object());
  if (answer.error().kind != ErrorKind::kNotFound) return Failure(answer.error());
  return Failure(
      with_meant_app(answer.error(), marathon::absolute_path(id), names_of(list_apps(client), "id")));
}

Result<json> get_job(const Client& client, const std::string& name) {
  auto answer = client.get(job_target(name));
  if (answer || answer.error().kind != ErrorKind::kNotFound) return answer;
  return Failure(with_nearest(answer.error(), name, names_of(list_jobs(client), "name")));
}

Result<std::vector<json>> list_apps(const Client& client) {
  DROVER_TRY(auto answer, client.get("/v2/apps"));
  return objects_in(answer.is_object() ? std::move(answer["apps"]) : json());
}

Result<std::vector<json>> list_jobs(const Client& client) {
  DROVER_TRY(auto answer, client.get("/v1/scheduler/jobs"));
  return objects_in(std::move(answer));
}

Result<std::vector<json>> list_deployments(const Client& client) {
  DROVER_TRY(auto answer, client.get("/v2/deployments"));
  return objects_in(std::move(answer));
}

Error with_nearest(Error error, const std::string& name, const std::set<std::string>& known) {
  if (error.kind != ErrorKind::kNotFound || known.contains(name)) return error;
  if (const auto meant = nearest(name, known); !meant.empty())
    error.hint = fmt::format("did you mean '{}'?", meant);
  return error;
}

std::string deployment_of(const json& answer) {
  if (!answer.is_object()) return "";
  const auto id = answer.value("deploymentId", json());
  return id.is_string() ? id.get<std::string>() : "";
}

}  // namespace drover::cli
