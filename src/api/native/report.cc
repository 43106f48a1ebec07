// The account of a time.

#include "engine/report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "api/async.h"
#include "api/native/handlers.h"

namespace drover::api {
namespace {

using engine::ReportBy;
using nlohmann::json;

constexpr std::chrono::hours kUnaskedTime{24 * 7};

Result<ReportBy> parse_by(const std::string& word) {
  if (word == "user") return ReportBy::kUser;
  if (word == "queue") return ReportBy::kQueue;
  if (word == "gpu") return ReportBy::kGpu;
  return fail(ErrorKind::kInvalid, fmt::format("'{}' is none of user, queue and gpu", word), "", "?by");
}

Result<engine::ReportQuery> asked_report(const Request& request, TimePoint now) {
  Query query(request);
  const auto by = query.text("by", "user");
  const auto since = query.time("since"), until = query.time("until");
  DROVER_CHECK_OK(query.finish());
  engine::ReportQuery asked;
  DROVER_TRY(asked.by, parse_by(by));
  asked.until = until.value_or(now);
  asked.since = since.value_or(asked.until - kUnaskedTime);
  if (asked.since < asked.until) return asked;
  return fail(ErrorKind::kInvalid, "The time ends before it begins", "'since' is to be before 'until'",
              "?since");
}

double seconds_of(std::chrono::milliseconds duration) {
  return static_cast<double>(duration.count()) / 1000;
}

json row_json(const engine::ReportRow& row) {
  const auto& waits = row.waits;
  return {{"gpu_seconds_held", row.held},
          {"gpu_seconds_used", row.used ? json(*row.used) : json()},
          {"running", row.running},
          {"ended", row.ended},
          {"failures", row.failures},
          {"waits",
           {{"tasks", waits.count},
            {"mean_seconds", seconds_of(waits.mean)},
            {"median_seconds", seconds_of(waits.median)},
            {"longest_seconds", seconds_of(waits.longest)}}}};
}

json report_json(const engine::Report& report) {
  const char* by = report.query.by == ReportBy::kUser    ? "user"
                   : report.query.by == ReportBy::kQueue ? "queue"
                                                         : "gpu";
  auto rows = json::array();
  for (const auto& row : report.rows) {
    rows.push_back(row_json(row));
    rows.back()[by] = row.key;
  }
  return {{"since", format_time(report.query.since)},
          {"until", format_time(report.query.until)},
          {"by", by},
          {"rows", std::move(rows)},
          {"total", row_json(report.total)}};
}

}  // namespace

asio::awaitable<Result<Response>> get_report(const Services& services, const Request& request) {
  auto& daemon = *services.daemon;
  DROVER_CO_TRY(const auto query, asked_report(request, daemon.now()));
  const auto caller = *request.caller;
  const auto start = [&](std::function<void(Result<engine::Report>)> done) {
    daemon.report(caller, query, std::move(done));
  };
  DROVER_CO_TRY(const auto report, co_await callback_result<Result<engine::Report>>(start));
  co_return json_response(report_json(report));
}

}  // namespace drover::api
