#include "cli/services/jobs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "cli/services/fields.h"
#include "workload/repetition.h"

namespace drover::cli {
namespace {

using nlohmann::json;

std::optional<TimePoint> time_in(const json& value, const char* field) {
  const auto parsed = parse_time(text_in(value, field));
  return parsed ? std::optional(*parsed) : std::nullopt;
}

std::string last_result(const json& job, TimePoint now) {
  const auto success = time_in(job, "lastSuccess");
  const auto error = time_in(job, "lastError");
  if (!success && !error) return "never ran";
  const bool well = success && (!error || *success >= *error);
  const auto ago = std::chrono::floor<std::chrono::seconds>(now - (well ? *success : *error));
  return fmt::format("{} {} ago", well ? "succeeded" : "failed",
                     format_duration(std::max<std::chrono::milliseconds>(ago, std::chrono::seconds(0))));
}

/// The start in "R/2030-01-31T02:30:00Z/P1D" is the next run; when cron's is next is reckoned.
std::string next_run(const std::string& schedule, const std::string& zone, TimePoint now) {
  const auto times = workload::Repetition::parse(schedule, zone, now);
  if (times && times->is_cron()) {
    const auto next = times->first_after(now);
    return next ? format_time(next->at) : "";
  }
  const auto first = schedule.find('/');
  const auto last = schedule.rfind('/');
  return first == std::string::npos || first == last ? "" : schedule.substr(first + 1, last - first - 1);
}

}  // namespace

JobState job_state(const json& job, const std::string& state, const std::string& waits, TimePoint now) {
  JobState result{state, last_result(job, now), "", ""};
  const auto schedule = text_in(job, "schedule");
  const auto parents = job.value("parents", std::vector<std::string>());
  if (job.value("disabled", false)) {
    result.state = "disabled";
    result.why_not = "it is disabled";
  } else if (!parents.empty()) {
    result.why_not = fmt::format("runs after {}", fmt::join(parents, ", "));
  } else if (schedule.starts_with("R0/")) {
    result.why_not = "all its runs have been";
  } else {
    result.next = next_run(schedule, text_in(job, "scheduleTimeZone"), now);
  }
  if (!waits.empty())
    result.why_not = "its run waits: " + waits;
  else if (state == "queued")
    result.why_not = "its run is tried again later";
  return result;
}

}  // namespace drover::cli
