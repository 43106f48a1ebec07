#include "objects/kinds.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>

#include "base/ids.h"
#include "kube/client/url_text.h"
#include "workload/repetition.h"

namespace drover::objects {
namespace {

using kube::text_at;
using kube::url_text;
using nlohmann::json;

constexpr const char* kJobOfChronos = "/v1/scheduler/job/";

std::int64_t count(const json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_number_integer() ? found->get<std::int64_t>() : 0;
}

bool has_ended(const json& record) {
  static const std::set<std::string> kEnds = {"finished", "failed", "killed", "lost"};
  return kEnds.contains(text_at(record, "/state"));
}

json app_status(const json& app) {
  const auto wanted = count(app, "instances"), running = count(app, "tasksRunning");
  return {{"id", text_at(app, "/id")},
          {"instances", fmt::format("{}/{}", running, wanted)},
          {"wanted", wanted},
          {"running", running},
          {"staged", count(app, "tasksStaged")},
          {"healthy", count(app, "tasksHealthy")},
          {"unhealthy", count(app, "tasksUnhealthy")},
          {"version", text_at(app, "/version")},
          {"deploying", !app.value("deployments", json::array()).empty()}};
}

std::string next_run(const json& job, TimePoint now) {
  const auto schedule = text_at(job, "/schedule");
  if (job.value("disabled", false) || schedule.starts_with("R0/")) return "";
  const auto times = workload::Repetition::parse(schedule, text_at(job, "/scheduleTimeZone"), now);
  if (!times) return "";
  const auto next = times->first_after(now);
  return next ? format_time(next->at) : "";
}

json schedule_status(const json& job, TimePoint now) {
  json status = {{"name", text_at(job, "/name")},
                 {"schedule", text_at(job, "/schedule")},
                 {"successes", count(job, "successCount")},
                 {"errors", count(job, "errorCount")}};
  const auto text = [&](const char* name, const std::string& value) {
    if (!value.empty()) status[name] = value;
  };
  text("next", next_run(job, now));
  const auto success = text_at(job, "/lastSuccess"), error = text_at(job, "/lastError");
  text("lastSuccess", success);
  text("lastError", error);
  if (!success.empty() || !error.empty()) status["last"] = success >= error ? "Succeeded" : "Failed";
  return status;
}

/// What another member's end brought about tells less than that member.
const json& telling(const json& records) {
  const auto is_cause = [](const json& record) {
    const auto state = text_at(record, "/state");
    return (state == "failed" || state == "lost") && text_at(record, "/cause") != "gang";
  };
  auto found = std::ranges::find_if(records, is_cause);
  if (found == records.end())
    found =
        std::ranges::find_if(records, [](const json& record) { return !text_at(record, "/reason").empty(); });
  return found == records.end() ? records.front() : *found;
}

std::string phase_of(const json& records) {
  std::set<std::string> states;
  for (const auto& record : records) states.insert(text_at(record, "/state"));
  if (std::ranges::all_of(records, has_ended))
    return states == std::set<std::string>{"finished"} ? "Succeeded"
           : states.contains("lost")                   ? "Lost"
                                                       : "Failed";
  const bool all_wait = std::ranges::none_of(states, [](const auto& state) {
    return state == "starting" || state == "running" || state == "stopping";
  });
  return all_wait && states.contains("queued") ? "Queued" : "Running";
}

json job_status(const json& records) {
  const auto& one = telling(records);
  json status = {{"phase", phase_of(records)},
                 {"task", text_at(records.front(), "/task/id")},
                 {"tasks", records.size()}};
  std::set<std::string> nodes, starts, ends;
  for (const auto& record : records) {
    nodes.insert(text_at(record, "/node"));
    starts.insert(text_at(record, "/started_at"));
    ends.insert(text_at(record, "/finished_at"));
  }
  nodes.erase("");
  starts.erase("");
  const auto text = [&](const char* name, const std::string& value) {
    if (!value.empty()) status[name] = value;
  };
  text("reason", text_at(one, "/reason"));
  constexpr std::size_t kMostNodes = 16;
  if (nodes.size() > kMostNodes)
    status["nodes"] = fmt::format("{} nodes", nodes.size());
  else
    text("nodes", fmt::format("{}", fmt::join(nodes, ",")));
  if (!starts.empty()) status["started"] = *starts.begin();  // as text they are in their order
  if (!is_end(text_at(status, "/phase"))) return status;
  text("finished", ends.empty() ? "" : *ends.rbegin());
  if (const auto exit = one.find("exit_status"); exit != one.end()) status["exitStatus"] = *exit;
  return status;
}

/// What a schedule says, without what has happened to it: of an interval the daemon shows when it is next.
std::string schedule_fingerprint(json job) {
  for (const auto* name :
       {"successCount", "errorCount", "lastSuccess", "lastError", "errorsSinceLastSuccess"})
    job.erase(name);
  if (const auto schedule = text_at(job, "/schedule"); schedule.starts_with('R'))
    job["schedule"] = schedule.substr(schedule.rfind('/') + 1);
  return sha256_hex(job.dump(-1, ' ', false, json::error_handler_t::replace)).substr(0, 16);
}

bool has_mark(const Definition& definition, const json& shown) {
  if (definition.kind == Kind::kJob) return !shown.empty();  // they are found by it
  if (definition.kind == Kind::kApp) {
    const auto labels = shown.value("labels", json::object());
    return labels.is_object() && labels.value(kMarkLabel, json()) == json(definition.mark());
  }
  for (const auto& variable : shown.value("environmentVariables", json::array()))
    if (text_at(variable, "/name") == kMarkVariable) return text_at(variable, "/value") == definition.mark();
  return false;
}

/// With the label, where the object's own are such; where they are not the daemon says so.
void add_label(json& body, const Definition& definition) {
  auto& labels = body["labels"];
  if (labels.is_null()) labels = json::object();
  if (labels.is_object()) labels[kMarkLabel] = definition.mark();
}

void add_variable(json& body, const Definition& definition) {
  auto& variables = body["environmentVariables"];
  if (variables.is_null()) variables = json::array();
  if (!variables.is_array()) return;
  std::erase_if(variables.get_ref<json::array_t&>(),
                [](const json& variable) { return text_at(variable, "/name") == kMarkVariable; });
  variables.push_back({{"name", kMarkVariable}, {"value", definition.mark()}});
}

std::string app_target(const Definition& definition) {
  return "/v2/apps/" + url_text(definition.id);
}

}  // namespace

std::string_view kind_name(Kind kind) {
  static constexpr std::array<std::string_view, 3> kNames = {"App", "Schedule", "Job"};
  return kNames.at(static_cast<std::size_t>(kind));
}

bool is_end(std::string_view phase) {
  return phase == "Succeeded" || phase == "Failed" || phase == "Lost";
}

json shown_status(Kind kind, const json& shown, TimePoint now) {
  if (kind == Kind::kApp) return app_status(shown);
  return kind == Kind::kJob ? job_status(shown) : schedule_status(shown, now);
}

bool Known::ended() const {
  return std::ranges::all_of(shown, has_ended);
}

Call ask_for(const Definition& definition) {
  Call call{"GET", "", nullptr, std::pair(definition.kind, definition.id)};
  if (definition.kind == Kind::kApp)
    call.target = app_target(definition);
  else if (definition.kind == Kind::kSchedule)
    call.target = kJobOfChronos + url_text(definition.id);
  else
    call.target = fmt::format("/v1/tasks?own=true&label={}",
                              url_text(fmt::format("{}={}", kMarkLabel, definition.mark())));
  return call;
}

Result<Known> read_known(const Definition& definition, const Answer& answer) {
  Known known;
  // Chronos says 400 of what it does not have.
  if (answer.status == 404 || (definition.kind == Kind::kSchedule && answer.status == 400)) return known;
  DROVER_TRY(const auto refused, read_refusal(answer));
  if (refused) return fail(ErrorKind::kUnavailable, refused->message);
  const auto* field = definition.kind == Kind::kApp ? "app" : "tasks";
  known.shown = definition.kind == Kind::kSchedule ? answer.body : answer.body.value(field, json());
  known.there = !known.shown.empty();
  if (!known.there) return known;
  known.ours = !answer.of_others && has_mark(definition, known.shown);
  if (definition.kind == Kind::kApp) known.fingerprint = text_at(known.shown, "/version");
  if (definition.kind == Kind::kSchedule) known.fingerprint = schedule_fingerprint(known.shown);
  return known;
}

Call submit(const Definition& definition, const json& spec, bool is_new) {
  auto body = spec;
  if (!body.is_object()) body = json::object();
  if (definition.kind == Kind::kSchedule) {
    if (!body.contains("name")) body["name"] = definition.id;
    add_variable(body, definition);
    const auto* target = body.contains("parents") ? "/v1/scheduler/dependency" : "/v1/scheduler/iso8601";
    return {is_new ? "POST" : "PUT", target, std::move(body)};
  }
  add_label(body, definition);
  if (definition.kind == Kind::kJob) {
    if (!body.contains("name")) body["name"] = definition.path.name;
    return {"POST", "/v1/tasks", std::move(body)};
  }
  if (!body.contains("id")) body["id"] = definition.id;
  if (is_new) return {"POST", "/v2/apps", std::move(body)};
  // What the object does not say is as by default, and who corrects a mistake waits for no deployment of it.
  return {"PUT", app_target(definition) + "?partialUpdate=false&force=true", std::move(body)};
}

std::vector<Call> withdraw(const Definition& definition, const Known& known) {
  if (definition.kind == Kind::kApp) return {{"DELETE", app_target(definition)}};
  if (definition.kind == Kind::kSchedule) return {{"DELETE", kJobOfChronos + url_text(definition.id)}};
  std::vector<Call> calls;
  const bool ended = known.ended();
  for (const auto& record : known.shown) {
    const auto target = "/v1/tasks/" + text_at(record, "/task/id");
    if (ended)
      calls.push_back({"DELETE", target});
    else if (!has_ended(record) && record.value("stop_requested", json()) != json(true))
      calls.push_back({"POST", target + "/stop"});
  }
  return calls;
}

}  // namespace drover::objects
