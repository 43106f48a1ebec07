// Queues and quotas. PUT writes one whole; PATCH changes what it names (RFC 7396) and makes it if need be.

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "api/async.h"
#include "api/native/handlers.h"
#include "api/native/views.h"
#include "base/decode.h"
#include "control/rules.h"

namespace drover::api {

using nlohmann::json;

namespace {

Result<json> parse_object(const std::string& body) {
  DROVER_TRY(auto value, parse_json(body, "The body"));
  if (!value.is_object())
    return fail(ErrorKind::kInvalid, fmt::format("expected an object, found {}", value.type_name()), "", "/");
  return value;
}

/// What PUT or PATCH makes of what was there. `name` says what the address has named already.
json changed(const Request& request, json before, const json& body) {
  if (request.method == "PUT") return body;
  before.merge_patch(body);
  return before;
}

/// The address says which one it is; a body that says another is a mistake.
Status name_it(json& value, const std::string& field, const std::string& name) {
  if (value.contains(field) && value[field] != name)
    return fail(ErrorKind::kInvalid, fmt::format("the address names '{}'", name), "leave it out",
                "/" + field);
  value[field] = name;
  return {};
}

json current_queue(const engine::Api& daemon, const engine::Caller& caller, const std::string& path) {
  for (const auto& view : daemon.queues(caller))
    if (view.queue.path == path) return control::encode(view.queue);
  return json::object();
}

struct Whose {
  std::string kind;  ///< "user" or "namespace"
  std::string name;
};

/// "user:alice", "namespace:team-a"
Result<Whose> parse_subject(const std::string& text) {
  const auto colon = text.find(':');
  Whose whose{text.substr(0, colon), colon == std::string::npos ? "" : text.substr(colon + 1)};
  if ((whose.kind != "user" && whose.kind != "namespace") || whose.name.empty())
    return fail(ErrorKind::kInvalid, fmt::format("'{}' does not say whose quota it is", text),
                "write for example user:alice or namespace:team-a");
  return whose;
}

json current_quota(const engine::Api& daemon, const engine::Caller& caller, const Whose& whose) {
  for (const auto& view : daemon.quotas(caller)) {
    auto quota = control::encode(view.quota);
    if (quota.value(whose.kind, "") == whose.name) return quota;
  }
  return json::object();
}

Response no_content() {
  Response response;
  response.status = 204;
  return response;
}

}  // namespace

Result<Response> list_queues(const Services& services, const Request& request) {
  DROVER_CHECK_OK(Query(request).finish());
  json queues = json::array();
  for (const auto& queue : services.daemon->queues(*request.caller)) queues.push_back(view(queue));
  return json_response({{"queues", std::move(queues)}});
}

asio::awaitable<Result<Response>> set_queue(const Services& services, const Request& request) {
  DROVER_CO_CHECK_OK(Query(request).finish());
  DROVER_CO_TRY(const auto body, parse_object(request.body));
  auto& daemon = *services.daemon;
  const auto& path = request.parameters.at("queue");
  auto value = changed(request, current_queue(daemon, *request.caller, path), body);
  DROVER_CO_CHECK_OK(name_it(value, "queue", path));
  DROVER_CO_TRY(auto queue, control::decode_queue(value));
  const auto start = [&](auto done) { daemon.set_queue(*request.caller, queue, std::move(done)); };
  DROVER_CO_CHECK_OK(co_await callback_result<Status>(start));
  co_return json_response(control::encode(queue));
}

asio::awaitable<Result<Response>> remove_queue(const Services& services, const Request& request) {
  DROVER_CO_CHECK_OK(Query(request).finish());
  auto& daemon = *services.daemon;
  const auto& path = request.parameters.at("queue");
  const auto start = [&](auto done) { daemon.remove_queue(*request.caller, path, std::move(done)); };
  DROVER_CO_CHECK_OK(co_await callback_result<Status>(start));
  co_return no_content();
}

Result<Response> list_quotas(const Services& services, const Request& request) {
  DROVER_CHECK_OK(Query(request).finish());
  json quotas = json::array();
  for (const auto& quota : services.daemon->quotas(*request.caller)) quotas.push_back(view(quota));
  return json_response({{"quotas", std::move(quotas)}});
}

asio::awaitable<Result<Response>> set_quota(const Services& services, const Request& request) {
  DROVER_CO_CHECK_OK(Query(request).finish());
  DROVER_CO_TRY(const auto whose, parse_subject(request.parameters.at("subject")));
  DROVER_CO_TRY(const auto body, parse_object(request.body));
  auto& daemon = *services.daemon;
  auto value = changed(request, current_quota(daemon, *request.caller, whose), body);
  DROVER_CO_CHECK_OK(name_it(value, whose.kind, whose.name));
  DROVER_CO_TRY(auto quota, control::decode_quota(value));
  const auto start = [&](auto done) { daemon.set_quota(*request.caller, quota, std::move(done)); };
  DROVER_CO_CHECK_OK(co_await callback_result<Status>(start));
  co_return json_response(control::encode(quota));
}

asio::awaitable<Result<Response>> remove_quota(const Services& services, const Request& request) {
  DROVER_CO_CHECK_OK(Query(request).finish());
  DROVER_CO_TRY(const auto whose, parse_subject(request.parameters.at("subject")));
  const auto kind = whose.kind == "user" ? placement::SubjectKind::kUser : placement::SubjectKind::kNamespace;
  auto& daemon = *services.daemon;
  const auto start = [&](auto done) {
    daemon.remove_quota(*request.caller, {kind, whose.name}, std::move(done));
  };
  DROVER_CO_CHECK_OK(co_await callback_result<Status>(start));
  co_return no_content();
}

}  // namespace drover::api
