#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <span>

#include "api/async.h"
#include "api/known_images.h"
#include "api/native/handlers.h"
#include "api/native/request_paths.h"
#include "api/native/views.h"
#include "api/workers.h"
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

/// What a task gets that names no network. The members of a gang reach each other over the machine's.
void name_network(const Services& services, json& body) {
  if (services.default_network == workload::NetworkMode::kHost || !body.is_object() || body.contains("gang"))
    return;
  auto& network = body["network"];
  if (network.is_null()) network = json::object();
  if (network.is_object() && !network.contains("mode")) network["mode"] = "bridge";
}

std::span<workload::TaskRequest> requests_of(workload::Submission& submission) {
  if (auto* gang = std::get_if<workload::GangRequest>(&submission)) return gang->members;
  return {&std::get<workload::TaskRequest>(submission), 1};
}

std::vector<std::string> images_of(workload::Submission& submission) {
  std::vector<std::string> images;
  for (const auto& request : requests_of(submission))
    if (request.task.image) images.push_back(*request.task.image);
  return images;
}

/// Looks up whom the requests name as their users. The database is asked elsewhere: the strand is
/// everybody's.
asio::awaitable<Status> find_users(const Services& services, const engine::Caller& caller,
                                   workload::Submission& submission) {
  const bool gang = std::holds_alternative<workload::GangRequest>(submission);
  int rank = 0;
  for (auto& request : requests_of(submission)) {
    const auto place = gang ? fmt::format("/members/{}/user", rank++) : "/user";
    if (!request.user) continue;
    auto found = co_await services.workers->users.named(*request.user, caller.user.uid);
    if (!found) {
      found.error().path = place;
      co_return Failure(std::move(found).error());
    }
    request.found_user = std::move(*found);
  }
  co_return Status();
}

}  // namespace

Result<Write> list_tasks(const Services& services, const Request& request) {
  Query query(request);
  const bool only_active = query.boolean("active", false);
  const bool summary = query.boolean("summary", false);
  DROVER_CHECK_OK(query.finish());
  return [tasks = services.daemon->tasks(*request.caller), only_active, summary]() -> Result<Response> {
    Response response;
    response.body = R"({"tasks":)";
    JsonWriter writer(response.body);
    writer.begin_array();
    tasks.each([&](const control::TaskRecord& record) {
      if (only_active && control::is_final(record.state)) return;
      if (summary)
        write_summary(writer, record);
      else
        control::write(writer, record);
    });
    writer.end_array();
    response.body += "}\n";
    return response;
  };
}

Result<Response> get_task(const Services& services, const Request& request) {
  DROVER_CHECK_OK(Query(request).finish());
  DROVER_TRY(const auto record, services.daemon->task(*request.caller, id_of(request)));
  return json_response(control::encode(record));
}

Result<Response> explain_task(const Services& services, const Request& request) {
  DROVER_CHECK_OK(Query(request).finish());
  DROVER_TRY(const auto explanation, services.daemon->explain(*request.caller, id_of(request)));
  return json_response(view(explanation));
}

asio::awaitable<Result<Response>> plan_task(const Services& services, const Request& request) {
  DROVER_CO_CHECK_OK(Query(request).finish());
  DROVER_CO_TRY(auto body, parse_json(request.body, "The body"));
  // Where it would go does not depend on what it runs.
  if (body.is_object() && !body.contains("command") && !body.contains("image")) body["command"] = {"true"};
  DROVER_CO_TRY(auto submission, workload::decode_submission(body));
  if (auto found = co_await find_users(services, *request.caller, submission); !found)
    co_return Failure(in_fields(found.error(), body));
  co_await inspect_images(*services.daemon, *request.caller, images_of(submission));
  workload::GangRequest gang;
  if (auto* several = std::get_if<workload::GangRequest>(&submission))
    gang = std::move(*several);
  else
    gang.members = {std::get<workload::TaskRequest>(std::move(submission))};
  const auto plan = services.daemon->plan(*request.caller, std::move(gang));
  if (!plan) co_return Failure(in_fields(plan.error(), body));
  co_return json_response(view(*plan));
}

namespace {

asio::awaitable<Result<Response>> submit_one(engine::Api& daemon, const Request& request,
                                             workload::TaskRequest task) {
  const auto start = [&](auto done) { daemon.submit(*request.caller, std::move(task), std::move(done)); };
  DROVER_CO_TRY(const auto record, co_await callback_result<Result<control::TaskRecord>>(start));
  auto response = json_response(control::encode(record), 201);
  response.headers.emplace_back("Location", "/v1/tasks/" + record.task.id);
  co_return response;
}

asio::awaitable<Result<Response>> submit_several(engine::Api& daemon, const Request& request,
                                                 workload::GangRequest gang) {
  using Records = std::vector<control::TaskRecord>;
  const auto start = [&](auto done) {
    daemon.submit_gang(*request.caller, std::move(gang), std::move(done));
  };
  DROVER_CO_TRY(const auto records, co_await callback_result<Result<Records>>(start));
  json tasks = json::array();
  for (const auto& record : records) tasks.push_back(control::encode(record));
  const auto& membership = records.front().task.gang;
  co_return json_response({{"gang", membership ? membership->id : ""}, {"tasks", std::move(tasks)}}, 201);
}

}  // namespace

asio::awaitable<Result<Response>> submit_task(const Services& services, const Request& request) {
  DROVER_CO_CHECK_OK(Query(request).finish());
  DROVER_CO_TRY(auto body, parse_json(request.body, "The body"));
  name_network(services, body);
  DROVER_CO_TRY(auto submission, workload::decode_submission(body));
  if (auto found = co_await find_users(services, *request.caller, submission); !found)
    co_return Failure(in_fields(found.error(), body));
  co_await inspect_images(*services.daemon, *request.caller, images_of(submission));
  auto* gang = std::get_if<workload::GangRequest>(&submission);
  auto response = gang != nullptr
                      ? co_await submit_several(*services.daemon, request, std::move(*gang))
                      : co_await submit_one(*services.daemon, request,
                                            std::move(std::get<workload::TaskRequest>(submission)));
  if (!response) co_return Failure(in_fields(response.error(), body));
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
