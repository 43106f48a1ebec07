#include "api/marathon/answers.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/decode.h"
#include "base/json_text.h"
#include "base/text.h"

namespace drover::api::marathon_v2 {

using nlohmann::json;

Response answer(const Services& services, std::string text, int status) {
  Response response;
  response.status = status;
  response.body = std::move(text);
  response.headers = {{"Cache-Control", "no-cache, no-store, must-revalidate"},
                      {"Pragma", "no-cache"},
                      {"Expires", "0"},
                      {"X-Frame-Options", "DENY"},
                      {"X-Marathon-Leader", "http://" + services.address}};
  return response;
}

Response refuse(const Services& services, int status, const std::string& message) {
  return answer(services, to_text(json{{"message", message}}), status);
}

Response refuse(const Services& services, const Refusal& refusal) {
  return answer(services, to_json_text(refusal), refusal.status);
}

Response refuse(const Services& services, const Error& error) {
  if (error.kind == ErrorKind::kInvalid) {
    // What placement finds wrong is deeper in the task than the one field of the app that it comes from.
    const auto path = error.path.starts_with("/gpus") ? "/gpus" : error.path.empty() ? "/" : error.path;
    const auto text = error.message + (error.hint.empty() ? "" : " (" + error.hint + ")");
    return refuse(services, Refusal{422, "Object is not valid", {{path, {text}}}, ""});
  }
  return refuse(services, error_kind_info(error.kind).http_status, to_string(error));
}

Response not_his(const Services& services) {
  return refuse(services, 403, "Not Authorized to perform this action!");
}

Response locked(const Services& services, const std::vector<std::string>& deployments) {
  json body = {
      {"message",
       "App is locked by one or more deployments. Override with the option '?force=true'. View details "
       "at '/v2/deployments/<DEPLOYMENT_ID>'."},
      {"deployments", json::array()}};
  for (const auto& id : deployments) body["deployments"].push_back({{"id", id}});
  return answer(services, to_text(body), 409);
}

Response with_deployment(Response response, const std::string& id) {
  response.headers.emplace_back("Marathon-Deployment-Id", id);
  return response;
}

Response deployment_result(const Services& services, const std::string& id, TimePoint version, int status) {
  auto text = fmt::format(R"({{"version":"{}","deploymentId":"{}"}})", format_time(version), id);
  return with_deployment(answer(services, std::move(text), status), id);
}

Decoded<json> body_of(const Request& request) {
  if (request.body.find_first_not_of(" \t\r\n") == std::string::npos)
    return tl::unexpected(Refusal{400, "Please specify data in JSON format", {}, "The body is empty"});
  auto value = parse_json(request.body, "The body");
  if (value) return std::move(*value);
  const auto& path = value.error().path;
  return tl::unexpected(
      Refusal{400, "Invalid JSON", {}, value.error().message + (path.empty() ? "" : ", at " + path)});
}

bool flag(const Request& request, const std::string& name, bool otherwise) {
  const auto found = request.query.find(name);
  if (found == request.query.end()) return otherwise;
  return equal_without_case(found->second, "true");  // Python says True
}

std::vector<std::string> values(const Request& request, std::string_view name) {
  std::vector<std::string> result;
  for (const auto& [key, value] : request.query_list) {
    if (key != name && key != std::string(name) + "[]") continue;
    for (std::size_t begin = 0; begin <= value.size();) {
      const auto end = std::min(value.find(',', begin), value.size());
      if (end > begin) result.push_back(value.substr(begin, end - begin));
      begin = end + 1;
    }
  }
  return result;
}

}  // namespace drover::api::marathon_v2
