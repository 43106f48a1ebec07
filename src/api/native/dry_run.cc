// What would become of several requests, one after the other, without doing any of them: the same handlers
// answer them, over a copy of the state (engine/dry_run.h).

#include "engine/dry_run.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "api/async.h"
#include "api/marathon/parts.h"
#include "api/native/handlers.h"
#include "api/routes.h"
#include "api/workers.h"
#include "base/decode.h"
#include "base/json_text.h"

namespace drover::api {
namespace {

using nlohmann::json;

constexpr std::size_t kMostRequests = 1000;

/// Definitions of apps, groups, jobs, tasks, queues and quotas; nothing else is made to be tried.
bool may_be_tried(const Request& request) {
  const auto& path = request.segments;
  const auto begins = [&](std::string_view first, std::string_view second) {
    return path.size() >= 2 && path[0] == first && path[1] == second;
  };
  if (request.method == "PUT") {
    const bool is_list = begins("v2", "apps") || begins("v1", "queues") || begins("v1", "quotas");
    return (is_list && path.size() == 2) || (begins("v2", "groups") && path.size() > 2);
  }
  const bool is_job =
      begins("v1", "scheduler") && path.size() == 3 && (path[2] == "iso8601" || path[2] == "dependency");
  return request.method == "POST" && (is_job || (begins("v1", "tasks") && path.size() == 2));
}

Request read_one(Decoder& fields, const engine::Caller& caller) {
  Request one;
  one.method = fields.string("method").value_or("");
  const auto target = fields.string("target").value_or("");
  if (const auto* body = fields.value("body")) one.body = to_text(*body);
  one.content_type = "application/json";
  one.caller = caller;
  if (const auto parsed = parse_target(target, one); !parsed)
    fields.mistake("target", parsed.error().message, parsed.error().hint);
  else if (!may_be_tried(one))
    fields.mistake("target", fmt::format("'{} {}' cannot be tried", one.method, target),
                   "it is one of PUT /v1/queues, PUT /v1/quotas, PUT /v2/apps, PUT /v2/groups/ID, POST "
                   "/v1/scheduler/iso8601, POST /v1/scheduler/dependency and POST /v1/tasks");
  fields.finish();
  return one;
}

Result<std::vector<Request>> read_requests(const std::string& text, const engine::Caller& caller) {
  DROVER_TRY(const auto body, parse_json(text, "The body"));
  std::vector<Error> mistakes;
  Decoder decoder(body, mistakes);
  std::vector<Request> requests;
  auto list = decoder.objects("requests");
  if (list.size() > kMostRequests)
    decoder.mistake("requests", fmt::format("at most {} can be tried at once", kMostRequests));
  else
    for (auto& fields : list) requests.push_back(read_one(fields, caller));
  decoder.finish();
  if (!mistakes.empty()) return Failure(join_mistakes(mistakes, "The dry run"));
  return requests;
}

/// What a refusal says; of what is accepted, only that it is.
json shown(const Response& response) {
  json answer = {{"status", response.status}};
  if (response.status < 400) return answer;
  auto body = json::parse(response.body, nullptr, false);
  answer["body"] = body.is_discarded() ? json(response.body) : std::move(body);
  return answer;
}

}  // namespace

asio::awaitable<Result<Response>> dry_run(const Services& services, const Request& request) {
  DROVER_CO_CHECK_OK(Query(request).finish());
  const auto& caller = *request.caller;
  const auto read = [&] { return read_requests(request.body, caller); };
  DROVER_CO_TRY(auto requests, co_await on_pool(services.workers->submissions, caller.user.uid, read));
  engine::DryRun decisions(*services.decisions);
  marathon_v2::Parts marathon(*services.daemon);  // nobody follows these
  marathon.strict = services.marathon->strict;
  auto tried = services;
  tried.daemon = nullptr;
  tried.decisions = &decisions;
  tried.marathon = &marathon;
  json answers = json::array();
  for (auto& each : requests) {
    const auto response = co_await route(all_routes(), tried, std::move(each));
    answers.push_back(shown(response));
    if (response.status >= 400) break;
  }
  auto response = json_response({{"answers", std::move(answers)}});
  response.read_only = true;
  co_return response;
}

}  // namespace drover::api
