#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "api/async.h"
#include "api/native/handlers.h"
#include "base/decode.h"
#include "control/record.h"

namespace drover::api {

using nlohmann::json;

namespace {

const std::string& id_of(const Request& request) {
  return request.parameters.at("id");
}

/// {"force": bool}, or no body at all.
Result<bool> decode_force(const std::string& body) {
  if (body.empty()) return false;
  DROVER_TRY(const auto value, parse_json(body, "The body"));
  std::vector<Error> mistakes;
  Decoder decoder(value, mistakes);
  const bool force = decoder.boolean("force").value_or(false);
  decoder.finish();
  if (!mistakes.empty()) return Failure(join_mistakes(mistakes, "The request"));
  return force;
}

}  // namespace

Result<Response> list_tasks(const Services& services, const Request& request) {
  DROVER_CHECK_OK(Query(request).finish());
  json tasks = json::array();
  for (const auto& record : services.daemon->tasks(*request.caller)) tasks.push_back(control::encode(record));
  return json_response({{"tasks", std::move(tasks)}});
}

Result<Response> get_task(const Services& services, const Request& request) {
  DROVER_CHECK_OK(Query(request).finish());
  DROVER_TRY(const auto record, services.daemon->task(*request.caller, id_of(request)));
  return json_response(control::encode(record));
}

Result<Response> explain_task(const Services& services, const Request& request) {
  DROVER_CHECK_OK(Query(request).finish());
  DROVER_TRY(const auto record, services.daemon->task(*request.caller, id_of(request)));
  DROVER_TRY(const auto reasons, services.daemon->explain(*request.caller, record.task.id));
  return json_response(
      {{"id", record.task.id}, {"state", control::to_string(record.state)}, {"reasons", reasons}});
}

asio::awaitable<Result<Response>> submit_task(const Services& services, const Request& request) {
  DROVER_CO_CHECK_OK(Query(request).finish());
  DROVER_CO_TRY(const auto body, parse_json(request.body, "The body"));
  DROVER_CO_TRY(auto task, workload::decode_task_request(body));
  if (!task.task.resources.share.whole())  // until placement accounts for shares
    co_return fail(ErrorKind::kUnsupported, "The task: a part of a GPU cannot be given: GPUs are given whole",
                   "ask for a whole number of GPUs", "/gpus");
  auto& daemon = *services.daemon;
  const auto start = [&](auto done) { daemon.submit(*request.caller, std::move(task), std::move(done)); };
  DROVER_CO_TRY(const auto record, co_await callback_result<Result<control::TaskRecord>>(start));
  auto response = json_response(control::encode(record), 201);
  response.headers.emplace_back("Location", "/v1/tasks/" + record.task.id);
  co_return response;
}

asio::awaitable<Result<Response>> stop_task(const Services& services, const Request& request) {
  DROVER_CO_CHECK_OK(Query(request).finish());
  DROVER_CO_TRY(const bool force, decode_force(request.body));
  auto& daemon = *services.daemon;
  const auto start = [&](auto done) { daemon.stop(*request.caller, id_of(request), force, std::move(done)); };
  DROVER_CO_TRY(const auto record, co_await callback_result<Result<control::TaskRecord>>(start));
  co_return json_response(control::encode(record));
}

asio::awaitable<Result<Response>> remove_task(const Services& services, const Request& request) {
  DROVER_CO_CHECK_OK(Query(request).finish());
  auto& daemon = *services.daemon;
  const auto start = [&](auto done) { daemon.remove(*request.caller, id_of(request), std::move(done)); };
  DROVER_CO_CHECK_OK(co_await callback_result<Status>(start));
  Response response;
  response.status = 204;
  co_return response;
}

}  // namespace drover::api
