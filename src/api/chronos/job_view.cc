#include "api/chronos/job_view.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/json_fields.h"
#include "base/json_text.h"
#include "base/json_writer.h"
#include "control/agents.h"

namespace drover::api::chronos {
namespace {

using control::RunOutcome;
using nlohmann::ordered_json;

constexpr std::array kResources = {
    "cpus",    "disk",       "mem",      "gpus", "gpu_model", "gpu_memory", "gpu_compute_capability",
    "gpu_ecc", "gpu_driver", "gpu_share"};

/// "11/20/26 12:00:00", as Chronos writes it.
std::string clock_text(const std::optional<TimePoint>& time) {
  if (!time) return "N/A";
  const auto seconds = std::chrono::floor<std::chrono::seconds>(*time);
  return fmt::format("{:%m/%d/%y %H:%M:%S}", fmt::gmtime(std::chrono::system_clock::to_time_t(seconds)));
}

/// "1h2m3s"
std::string span_text(std::chrono::milliseconds span) {
  const auto seconds = std::max<std::int64_t>(0, span.count() / 1000);
  std::string text;
  const auto add = [&](std::int64_t count, char unit) {
    if (count > 0) text += fmt::format("{}{}", count, unit);
  };
  add(seconds / 86400, 'd');
  add(seconds / 3600 % 24, 'h');
  add(seconds / 60 % 60, 'm');
  add(seconds % 60, 's');
  return text.empty() ? "0s" : text;
}

struct RunView {
  const control::ScheduleRun* run;
  const char* status;
  std::optional<TimePoint> started, ended;
  std::string why = {};  ///< it failed
};

ordered_json view_of(const control::State& state, const control::ScheduleRecord& record, const RunView& view,
                     TimePoint now) {
  const auto* task = state.find(view.run->task_id);

  const auto until = view.ended.value_or(now);
  ordered_json shown = {
      {"taskId", view.run->origin_id},
      {"jobName", record.schedule.name},
      {"slaveId", task != nullptr ? control::agent_of(state, *task) : control::agent_id(state.journal_id)},
      {"startTime", clock_text(view.started)},
      {"endTime", clock_text(view.ended)},
      {"duration", view.started ? span_text(until - *view.started) : "N/A"},
      {"status", view.status}};
  if (const auto elements = record.elements.find(view.run->origin_id); elements != record.elements.end())
    shown["numElementsProcessed"] = elements->second;
  // Clients of Chronos know nothing of it.
  if (!view.why.empty()) shown["reason"] = view.why;
  return shown;
}

}  // namespace

std::string time_text(const std::optional<TimePoint>& time) {
  return time ? format_time(*time) : "";
}

std::string schedule_text(const control::ScheduleRecord& record) {
  if (record.schedule.repetition.empty()) return "";
  const auto repetition =
      workload::Repetition::parse(record.schedule.repetition, record.schedule.time_zone, TimePoint{});
  return repetition ? repetition->text_from(record.next) : record.schedule.repetition;
}

std::string encode_job(const control::ScheduleRecord& record) {
  const auto& schedule = record.schedule;
  const auto fields = json_fields(schedule.definition);
  std::string text;
  JsonWriter job(text);
  const auto copy = [&](const auto& names) {
    for (const std::string_view name : names)
      for (const auto& [given, value] : fields)
        if (given == name) job.field_raw(name, value);
  };
  job.begin_object();
  job.field("name", schedule.name);
  copy(std::array{"command"});
  job.field("shell", schedule.shell);
  copy(std::array{"executor", "executorFlags", "taskInfoData"});
  job.field("retries", schedule.retries);
  copy(std::array{"owner", "ownerName", "description"});
  job.field("successCount", record.successes);
  job.field("errorCount", record.errors);
  job.field("lastSuccess", time_text(record.last_success));
  job.field("lastError", time_text(record.last_error));
  copy(kResources);
  job.field("disabled", schedule.disabled);
  job.field("softError", schedule.soft_error);
  copy(std::array{"dataProcessingJobType"});
  job.field("errorsSinceLastSuccess", record.errors_since_success);
  copy(std::array{"fetch", "uris", "environmentVariables", "arguments", "highPriority", "runAsUser"});
  job.field("concurrent", schedule.concurrent);
  copy(std::array{"maxCompletionTime", "container", "constraints", "epsilon", "notificationUrl", "async"});
  if (schedule.parents.empty()) {
    job.field("schedule", schedule_text(record));
    job.field("scheduleTimeZone", schedule.time_zone);
  } else {
    job.key("parents");
    job.begin_array();
    for (const auto& parent : schedule.parents) job.value(parent);
    job.end_array();
  }
  job.end_object();
  return text;
}

std::string status_of(const control::ScheduleRecord& record) {
  if (!record.last_success && !record.last_error) return "fresh";
  if (!record.last_error) return "success";
  return record.last_success && *record.last_success >= *record.last_error ? "success" : "failure";
}

std::string state_of(const control::State& state, const control::ScheduleRecord& record) {
  int running = 0;
  for (const auto& run : record.active) {
    const auto* task = state.find(run.task_id);
    if (task != nullptr && control::owns_resources(task->state)) ++running;
  }
  if (running > 0) return fmt::format("{} running", running);
  return record.active.empty() && record.retries.empty() ? "idle" : "queued";
}

double percentile(const control::ScheduleRecord& record, double part) {
  auto durations = record.durations;
  if (durations.empty()) return 0;
  std::ranges::sort(durations);
  const auto rank = std::ceil(part * static_cast<double>(durations.size()));
  const auto index = static_cast<std::size_t>(std::max(1.0, rank)) - 1;
  return static_cast<double>(durations[std::min(index, durations.size() - 1)]);
}

double mean(const control::ScheduleRecord& record) {
  const auto& durations = record.durations;
  if (durations.empty()) return 0;
  return std::accumulate(durations.begin(), durations.end(), 0.0) / static_cast<double>(durations.size());
}

std::string encode_statistics(const control::State& state, const control::ScheduleRecord& record,
                              TimePoint now) {
  ordered_json histogram = {{"75thPercentile", percentile(record, 0.75)},
                            {"95thPercentile", percentile(record, 0.95)},
                            {"98thPercentile", percentile(record, 0.98)},
                            {"99thPercentile", percentile(record, 0.99)},
                            {"median", percentile(record, 0.5)},
                            {"mean", mean(record)},
                            {"count", record.durations.size()}};
  auto runs = ordered_json::array();
  auto skipped = ordered_json::array();
  for (const auto& run : record.active) {
    const auto* task = state.find(run.task_id);
    const auto started = task != nullptr ? task->started_at : std::nullopt;
    runs.push_back(view_of(state, record, {&run, started ? "Running" : "Idle", started, std::nullopt}, now));
  }
  for (auto entry = record.history.rbegin(); entry != record.history.rend(); ++entry)
    if (entry->outcome == RunOutcome::kSkipped)
      skipped.push_back(
          {{"lastDue", time_text(entry->run.due)}, {"count", entry->count}, {"reason", entry->message}});
    else
      runs.push_back(view_of(state, record,
                             {&entry->run, entry->outcome == RunOutcome::kSucceeded ? "Success" : "Fail",
                              entry->started_at, entry->at, entry->message},
                             now));
  ordered_json statistics = {{"histogram", std::move(histogram)}, {"taskStatHistory", std::move(runs)}};
  // Clients of Chronos know nothing of it.
  if (!skipped.empty()) statistics["skippedRuns"] = std::move(skipped);
  return to_text(statistics);
}

}  // namespace drover::api::chronos
