#include "api/chronos/run_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "control/stored.h"

namespace drover::api::chronos {
namespace {

using control::RunOutcome;
using nlohmann::ordered_json;

std::string word_of(RunOutcome outcome) {
  return ordered_json(outcome).get<std::string>();
}

std::string time_text(std::optional<TimePoint> time) {
  return time ? format_time(*time) : "";
}

/// As Chronos shows it, also a number.
std::string text_in(const ordered_json& definition, const char* name) {
  const auto field = definition.find(name);
  if (field == definition.end()) return "";
  return field->is_string() ? field->get<std::string>() : field->dump();
}

/// What Chronos tells by HTTP, with its names; all of it is text there.
void add_fields_of_chronos(const control::ScheduleRecord& record, ordered_json& body) {
  const auto& schedule = record.schedule;
  const auto definition = ordered_json::parse(schedule.definition, nullptr, false);
  if (definition.is_object())
    for (const auto* name : {"cpus", "mem", "executor", "executorFlags"})
      body[name] = text_in(definition, name);
  body["command"] = schedule.task.command.empty() ? "" : schedule.task.command->back();
  body["softError"] = schedule.soft_error ? "true" : "false";
  body["retries"] = std::to_string(schedule.retries);
  body["successCount"] = std::to_string(record.successes);
  body["errorCount"] = std::to_string(record.errors);
  body["errorsSinceLastSuccess"] = std::to_string(record.errors_since_success);
  body["lastSuccess"] = time_text(record.last_success);
  body["lastError"] = time_text(record.last_error);
  if (const auto owner = definition.is_object() ? text_in(definition, "owner") : ""; !owner.empty())
    body["to"] = owner;
}

std::string subject_of(const std::string& name, RunOutcome outcome) {
  // The words that people filter for.
  if (outcome == RunOutcome::kFailed) return fmt::format("[Chronos] job '{}' failed!", name);
  return fmt::format("[Chronos] job '{}' {}", name, word_of(outcome));
}

}  // namespace

std::optional<engine::WebhookMessage> report_of(const control::notice::ScheduleRunEnded& ended,
                                                const control::State& state) {
  const auto found = state.schedules.find(ended.schedule);
  if (found == state.schedules.end() || !ended.last_attempt) return std::nullopt;
  auto to = workload::parse_webhook(found->second.schedule.webhook);
  if (!to) return std::nullopt;
  const auto& entry = ended.entry;
  ordered_json body;
  body["subject"] = subject_of(ended.schedule, entry.outcome);
  body["message"] = entry.message;
  body["job"] = ended.schedule;
  body["outcome"] = word_of(entry.outcome);
  body["taskId"] = entry.run.origin_id;
  body["attempt"] = entry.run.attempt;
  body["arguments"] = entry.run.arguments;
  body["due"] = format_time(entry.run.due);
  body["startedAt"] = entry.started_at ? ordered_json(format_time(*entry.started_at)) : ordered_json();
  body["endedAt"] = format_time(entry.at);
  add_fields_of_chronos(found->second, body);
  return engine::WebhookMessage{std::move(*to), to_text(body), entry.run.origin_id};
}

}  // namespace drover::api::chronos
