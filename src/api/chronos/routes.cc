#include "api/chronos/routes.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>

#include "api/chronos/handlers.h"
#include "api/transaction.h"
#include "base/json_text.h"

namespace drover::api {
namespace chronos {

bool may_use(const Request& request, const control::ScheduleRecord& record) {
  return request.caller->is_root() || record.schedule.task.owner == request.caller->user.uid;
}

Result<const control::ScheduleRecord*> find_job(const Services& services, const Request& request) {
  const auto& name = request.parameters.at("name");
  const auto& schedules = services.decisions->state().schedules;
  const auto found = schedules.find(name);
  if (found == schedules.end() || !may_use(request, found->second))
    return fail(ErrorKind::kNotFound, fmt::format("Job '{}' not found", name));
  return &found->second;
}

Response json_text(std::string text) {
  Response response;
  response.body = std::move(text);
  return response;
}

Response plain_text(std::string text) {
  Response response;
  response.content_type = "text/plain";
  response.body = std::move(text);
  return response;
}

Response no_content() {
  Response response;
  response.status = 204;
  return response;
}

Response error_of(const Error& error) {
  struct Shape {
    int status;
    const char* words;
  };
  const auto shape = [&]() -> Shape {
    switch (error.kind) {
      case ErrorKind::kUnauthenticated:
        return {401, "Unauthorized"};
      case ErrorKind::kPermissionDenied:
        return {403, "Forbidden"};
      case ErrorKind::kExhausted:
      case ErrorKind::kUnavailable:
      case ErrorKind::kTimeout:
        return {503, "Service Unavailable"};
      case ErrorKind::kInternal:
      case ErrorKind::kCorrupt:
        return {500, "Internal Server Error"};
      default:
        return {400, "Bad Request"};
    }
  }();
  auto message = error.message;
  if (!error.hint.empty()) message += " (" + error.hint + ")";
  using nlohmann::ordered_json;
  auto response = json_text(to_text(ordered_json({{"status", shape.words}, {"message", message}})));
  response.status = shape.status;
  return response;
}

namespace {

/// Errors as Chronos shows them. Its pages are read by programs of other origins.
Response shown(Result<Response> result) {
  auto response = result ? std::move(*result) : error_of(result.error());
  response.headers.emplace_back("Access-Control-Allow-Origin", "*");
  return response;
}

/// Answers at once.
template <Result<Response> (*function)(const Services&, const Request&)>
asio::awaitable<Result<Response>> answer(const Services& services, const Request& request) {
  co_return shown(function(services, request));
}

/// Answers when what it changes is kept.
template <Result<Response> (*function)(const Services&, const Request&)>
asio::awaitable<Result<Response>> answer_changing(const Services& services, const Request& request) {
  co_return shown(co_await changing<function>(services, request));
}

/// Writes the answer on another thread.
template <AnswerBeside (*function)(const Services&, const Request&)>
asio::awaitable<Result<Response>> answer_beside(const Services& services, const Request& request) {
  co_return shown(co_await beside<function>(services, request));
}

/// Answers at once, but for what has to wait for something in between.
template <AnswerLater (*function)(const Services&, const Request&)>
asio::awaitable<Result<Response>> answer_later(const Services& services, const Request& request) {
  co_return shown(co_await function(services, request));
}

#define DROVER_CHRONOS_ROUTES(prefix)                                                          \
  Route{"GET", prefix "/jobs", answer_beside<list_jobs>},                                      \
      Route{"GET", prefix "/jobs/summary", answer_beside<summarise_jobs>},                     \
      Route{"GET", prefix "/jobs/search", answer_beside<search_jobs>},                         \
      Route{"GET", prefix "/job/{name}", answer<get_job>},                                     \
      Route{"PUT", prefix "/job/{name}", answer_changing<run_job>},                            \
      Route{"DELETE", prefix "/job/{name}", answer_changing<remove_job>},                      \
      Route{"PUT", prefix "/job/success/{name}", answer_changing<mark_job>},                   \
      Route{"GET", prefix "/job/stat/{name}", answer<get_job_statistics>},                     \
      Route{"POST", prefix "/job/{name}/task/{task}/progress", answer_changing<add_progress>}, \
      Route{"POST", prefix "/iso8601", answer_later<define_scheduled>},                        \
      Route{"PUT", prefix "/iso8601", answer_later<define_scheduled>},                         \
      Route{"POST", prefix "/dependency", answer_later<define_dependent>},                     \
      Route{"PUT", prefix "/dependency", answer_later<define_dependent>},                      \
      Route{"DELETE", prefix "/task/kill/{name}", answer_changing<kill_job>},                  \
      Route{"GET", prefix "/graph/dot", answer_beside<get_graph_dot>},                         \
      Route{"GET", prefix "/graph/csv", answer_beside<get_graph_csv>},                         \
      Route{"GET", prefix "/stats/{statistic}", answer_beside<get_statistics>}, Route {        \
    "GET", prefix "/leader", answer<get_leader>                                                \
  }

constexpr std::array kRoutes = {DROVER_CHRONOS_ROUTES("/v1/scheduler"), DROVER_CHRONOS_ROUTES("/scheduler"),
                                Route{"GET", "/leader", answer<get_leader>}};

#undef DROVER_CHRONOS_ROUTES

}  // namespace
}  // namespace chronos

std::span<const Route> chronos_routes() {
  return chronos::kRoutes;
}

}  // namespace drover::api
