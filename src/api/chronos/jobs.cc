#include <algorithm>
#include <nlohmann/json.hpp>

#include "api/chronos/handlers.h"
#include "api/chronos/job_view.h"
#include "base/text.h"

namespace drover::api::chronos {
namespace {

using nlohmann::ordered_json;

std::string command_of(const control::ScheduleRecord& record) {
  const auto definition = ordered_json::parse(record.schedule.definition, nullptr, false);
  const auto command = definition.is_object() ? definition.value("command", ordered_json()) : ordered_json();
  return command.is_string() ? command.get<std::string>() : "";
}

std::string joined(const std::vector<std::string>& jobs) {
  std::string text = "[";
  for (const auto& job : jobs) {
    if (text.size() > 1) text += ",";
    text += job;
  }
  return text + "]";
}

}  // namespace

AnswerBeside list_jobs(const Services& services, const Request& request) {
  return beside_of(services, request, [](const control::State& state, const Request& asked) {
    std::vector<std::string> jobs;
    each_job(state, asked, [&](const auto& record) { jobs.push_back(encode_job(record)); });
    return json_text(joined(jobs));
  });
}

AnswerBeside summarise_jobs(const Services& services, const Request& request) {
  return beside_of(services, request, [](const control::State& state, const Request& asked) {
    auto jobs = ordered_json::array();
    each_job(state, asked, [&](const control::ScheduleRecord& record) {
      jobs.push_back({{"name", record.schedule.name},
                      {"status", status_of(record)},
                      {"state", state_of(state, record)},
                      {"schedule", schedule_text(record)},
                      {"parents", record.schedule.parents},
                      {"disabled", record.schedule.disabled}});
    });
    return json_text(ordered_json({{"jobs", std::move(jobs)}}).dump());
  });
}

AnswerBeside search_jobs(const Services& services, const Request& request) {
  Query query(request);
  const auto name = lower(query.text("name"));
  const auto command = lower(query.text("command"));
  const auto any = lower(query.text("any"));
  constexpr std::int64_t kMost = 1'000'000;
  const auto limit = query.integer("limit", 0, kMost, 10);
  const auto offset = query.integer("offset", 0, kMost, 0);
  DROVER_CHECK_OK(query.finish());
  const auto is_found = [=](const control::ScheduleRecord& record) {
    const auto own_name = lower(record.schedule.name);
    const auto own_command = lower(command_of(record));
    const auto has = [](const std::string& text, const std::string& part) {
      return text.find(part) != text.npos;
    };
    return has(own_name, name) && has(own_command, command) &&
           (any.empty() || has(own_name, any) || has(own_command, any));
  };
  return beside_of(services, request, [=](const control::State& state, const Request& asked) {
    std::vector<std::string> found;
    std::int64_t seen = 0;
    each_job(state, asked, [&](const control::ScheduleRecord& record) {
      if (is_found(record) && seen++ >= offset && static_cast<std::int64_t>(found.size()) < limit)
        found.push_back(encode_job(record));
    });
    return json_text(joined(found));
  });
}

Result<Response> get_job(const Services& services, const Request& request) {
  DROVER_TRY(const auto* record, find_job(services, request));
  return json_text(encode_job(*record));
}

}  // namespace drover::api::chronos
