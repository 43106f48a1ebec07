#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>
#include <span>

#include "api/async.h"
#include "api/known_images.h"
#include "api/native/handlers.h"
#include "api/native/request_paths.h"
#include "api/native/views.h"
#include "api/transaction.h"
#include "api/workers.h"
#include "base/decode.h"
#include "base/json_writer.h"
#include "control/jobs.h"
#include "control/record.h"
#include "workload/resource_fields.h"
#include "workload/submission.h"

namespace drover::api {

using nlohmann::json;

namespace {

/// More than most take, and what is not written to costs nothing.
constexpr std::size_t kBytesOfTask = 1500, kBytesOfSummary = 300;

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

/// For a plan: where it would go does not depend on what it runs.
void name_command(const Services&, json& body) {
  if (body.is_object() && !body.contains("command") && !body.contains("image")) body["command"] = {"true"};
}

/// What a task gets that names no network. The members of a gang reach each other over the machine's.
void name_network(const Services& services, json& body) {
  if (services.default_network == workload::NetworkMode::kHost || !body.is_object() || body.contains("gang"))
    return;
  auto& network = body["network"];
  if (network.is_null()) network = json::object();
  if (network.is_object() && !network.contains("mode")) network["mode"] = "bridge";
}

/// `label`: "name=value"; the first '=' ends the name.
bool has_label(const control::TaskRecord& record, const std::string& label) {
  const auto end = label.find('=');
  const auto found = record.task.labels->find(label.substr(0, end));
  return found != record.task.labels->end() && label.compare(end + 1, label.npos, found->second) == 0;
}

Status check_named(const std::string& id) {
  constexpr std::size_t kLongest = 256;
  if (!id.empty() && id.size() <= kLongest) return {};
  return fail(ErrorKind::kInvalid, id.empty() ? "expected a task's id, found none" : "the id is too long");
}

std::vector<std::string> images_of(workload::Submission& submission) {
  std::vector<std::string> images;
  for (const auto& request : workload::requests_in(submission))
    if (request.task.image) images.push_back(*request.task.image);
  return images;
}

/// Looks up whom the requests name as their users. The database is asked elsewhere: the strand is
/// everybody's.
asio::awaitable<Status> find_users(const Services& services, const engine::Caller& caller,
                                   workload::Submission& submission) {
  const bool gang = std::holds_alternative<workload::GangRequest>(submission);
  int rank = 0;
  for (auto& request : workload::requests_in(submission)) {
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

struct ReadSubmission {
  json body;
  workload::Submission submission;
};

/// The body, to which `add` adds what it leaves out. Read beside the strand: a gang may be described in few
/// bytes and be large.
asio::awaitable<Result<ReadSubmission>> read_submission(const Services& services, const Request& request,
                                                        void (*add)(const Services&, json& body)) {
  const auto read_body = [&]() -> Result<ReadSubmission> {
    DROVER_TRY(auto body, parse_json(request.body, "The body"));
    add(services, body);
    DROVER_TRY(auto submission, workload::decode_submission(body));
    return ReadSubmission{std::move(body), std::move(submission)};
  };
  const auto& caller = *request.caller;
  DROVER_CO_TRY(auto read, co_await on_pool(services.workers->submissions, caller.user.uid, read_body));
  if (auto found = co_await find_users(services, caller, read.submission); !found)
    co_return Failure(in_fields(found.error(), read.body));
  co_await inspect_images(*services.decisions, caller, images_of(read.submission));
  co_return read;
}

}  // namespace

Result<Write> list_tasks(const Services& services, const Request& request) {
  Query query(request);
  const bool only_active = query.boolean("active", false);
  const bool summary = query.boolean("summary", false);
  const auto label = query.text("label");
  const auto own = query.boolean("own", false) ? std::optional(request.caller->user.uid) : std::nullopt;
  const auto named = query.texts("id", check_named);
  DROVER_CHECK_OK(query.finish());
  if (!label.empty() && label.find('=') == label.npos)
    return fail(ErrorKind::kInvalid, fmt::format("'{}' is no label and its value", label), "say NAME=VALUE",
                "label");
  return [tasks = services.daemon->tasks(*request.caller), only_active, summary, label, own,
          ids = std::set<std::string>(named.begin(), named.end())]() -> Result<Response> {
    Response response;
    if (label.empty() && ids.empty())
      response.body.reserve(tasks.most() * (summary ? kBytesOfSummary : kBytesOfTask));
    response.body = R"({"tasks":)";
    JsonWriter writer(response.body);
    writer.begin_array();
    tasks.each([&](const control::TaskRecord& record) {
      if (!ids.empty() && !ids.contains(record.task.id)) return;
      if (only_active && control::is_final(record.state)) return;
      if (own && record.task.owner != *own) return;
      if (!label.empty() && !has_label(record, label)) return;
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

Result<Write> explain_task(const Services& services, const Request& request) {
  DROVER_CHECK_OK(Query(request).finish());
  return [explain = services.daemon->explain(*request.caller, id_of(request))]() -> Result<Response> {
    DROVER_TRY(const auto explanation, explain());
    return json_response(view(explanation));
  };
}

asio::awaitable<Result<Response>> plan_task(const Services& services, const Request& request) {
  DROVER_CO_CHECK_OK(Query(request).finish());
  DROVER_CO_TRY(auto read, co_await read_submission(services, request, name_command));
  workload::GangRequest gang;
  if (auto* several = std::get_if<workload::GangRequest>(&read.submission))
    gang = std::move(*several);
  else
    gang.members = {std::move(workload::requests_in(read.submission).front())};
  const auto plan = co_await on_pool(services.workers->plans, request.caller->user.uid,
                                     services.daemon->plan(*request.caller, std::move(gang)));
  if (!plan) co_return Failure(in_fields(plan.error(), read.body));
  co_return json_response(view(*plan));
}

namespace {

asio::awaitable<Result<Response>> submit_one(engine::Decisions& daemon, const Request& request,
                                             workload::TaskRequest task) {
  DROVER_CO_TRY(const auto record,
                co_await in_transaction(daemon, [&] { return daemon.submit(*request.caller, task); }));
  auto response = json_response(control::encode(record), 201);
  response.headers.emplace_back("Location", "/v1/tasks/" + record.task.id);
  co_return response;
}

/// What was accepted at once, under one id: {"gang": …} or {"array": …}.
asio::awaitable<Result<Response>> answer_several(const Services& services, const Request& request,
                                                 std::vector<control::TaskRecord> accepted) {
  const auto write = [records = std::make_shared<const std::vector<control::TaskRecord>>(
                          std::move(accepted))]() -> Result<Response> {
    Response response;
    response.status = 201;
    JsonWriter writer(response.body);
    writer.begin_object();
    const auto& first = records->front().task;
    writer.field(first.batch.array ? "array" : "gang", control::submission_id(first));
    writer.key("tasks");
    writer.begin_array();
    for (const auto& record : *records) control::write(writer, record);
    writer.end_array();
    writer.end_object();
    response.body += '\n';
    return response;
  };
  auto written = co_await on_pool(services.workers->submissions, request.caller->user.uid, write);
  co_return written ? std::move(written) : write();  // it is accepted, however many others of his wait
}

asio::awaitable<Result<Response>> submit(const Services& services, const Request& request,
                                         workload::Submission submission) {
  const auto& caller = *request.caller;
  auto& daemon = *services.decisions;
  if (auto* one = std::get_if<workload::TaskRequest>(&submission))
    co_return co_await submit_one(daemon, request, std::move(*one));
  const auto several = [&] {
    const auto* gang = std::get_if<workload::GangRequest>(&submission);
    return gang != nullptr ? daemon.submit_gang(caller, *gang)
                           : daemon.submit_array(caller, std::get<workload::ArrayRequest>(submission));
  };
  DROVER_CO_TRY(auto accepted, co_await in_transaction(daemon, several));
  co_return co_await answer_several(services, request, std::move(accepted));
}

}  // namespace

asio::awaitable<Result<Response>> submit_task(const Services& services, const Request& request) {
  DROVER_CO_CHECK_OK(Query(request).finish());
  DROVER_CO_TRY(auto read, co_await read_submission(services, request, name_network));
  auto response = co_await submit(services, request, std::move(read.submission));
  if (!response) co_return Failure(in_fields(response.error(), read.body));
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

asio::awaitable<Result<Response>> change_task(const Services& services, const Request& request) {
  DROVER_CO_CHECK_OK(Query(request).finish());
  DROVER_CO_TRY(const auto body, parse_json(request.body, "The body"));
  DROVER_CO_TRY(const auto share, workload::decode_share(body));
  auto& daemon = *services.daemon;
  DROVER_CO_TRY(const auto record, co_await in_transaction(daemon, [&] {
                  return daemon.resize(*request.caller, id_of(request), share);
                }));
  co_return json_response(control::encode(record));
}

asio::awaitable<Result<Response>> remove_task(const Services& services, const Request& request) {
  DROVER_CO_CHECK_OK(Query(request).finish());
  auto& daemon = *services.daemon;
  DROVER_CO_CHECK_OK(
      co_await in_transaction(daemon, [&] { return daemon.remove(*request.caller, id_of(request)); }));
  Response response;
  response.status = 204;
  co_return response;
}

}  // namespace drover::api
