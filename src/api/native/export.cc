// What the daemon keeps as definitions, in the form in which files have them, so that another daemon can be
// told all of it.

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "api/beside.h"
#include "api/chronos/handlers.h"
#include "api/chronos/job_view.h"
#include "api/native/handlers.h"
#include "base/json_text.h"
#include "chronos/job.h"
#include "engine/access.h"
#include "marathon/app.h"
#include "placement/rules_json.h"

namespace drover::api {
namespace {

using control::State;
using nlohmann::json;

/// `value` without the fields that make no difference: it means the same without them.
template <typename MeansTheSame>
json without_defaults(json value, const MeansTheSame& means_the_same) {
  std::vector<std::string> names;
  for (const auto& [name, unused] : value.items()) names.push_back(name);
  for (const auto& name : names) {
    auto shorter = value;
    shorter.erase(name);
    if (means_the_same(shorter)) value = std::move(shorter);
  }
  return value;
}

json definition_of(const workload::Service& service) {
  auto app = json::parse(service.definition);
  app["instances"] = service.instances;
  app["id"] = service.id;
  // Those of its ports that load balancers know are said: left open, they would be others elsewhere.
  const auto ports = marathon::service_ports(service);
  const marathon::Options options{.service_ports = {ports.begin(), ports.end()}};
  const auto read = [&](const json& definition) { return marathon::decode_app(definition, options); };
  const auto whole = read(app);
  if (!whole) return app;
  return without_defaults(std::move(app), [&](const json& shorter) {
    const auto again = read(shorter);
    return again && again->service == whole->service && again->user == whole->user;
  });
}

json definition_of(const control::ScheduleRecord& record) {
  auto job = json::parse(chronos::encode_job(record));
  const auto kind = record.schedule.parents.empty() ? drover::chronos::JobKind::kScheduled
                                                    : drover::chronos::JobKind::kDependent;
  const auto read = [&](const json& definition) {
    return drover::chronos::read_job(to_text(definition), kind, nullptr, TimePoint{});
  };
  const auto whole = read(job);
  if (!whole) return job;
  return without_defaults(std::move(job), [&](const json& shorter) {
    const auto again = read(shorter);
    return again && again->schedule == whole->schedule && again->run_as_user == whole->run_as_user;
  });
}

/// Who brings root's export to a daemon is root: whom a definition runs as is said, where it is not root.
void say_user(json& definition, const char* field, const engine::Caller& caller, const workload::Task& task) {
  if (caller.is_root() && task.user.uid != 0 && !definition.contains(field))
    definition[field] = task.user.name;
}

template <typename Rule>
json definition_of(const Rule& rule, placement::Read<Rule> (*read)(const json&), const char* kind) {
  auto definition = without_defaults(placement::encode(rule), [&](const json& shorter) {
    const auto again = read(shorter);
    return again && *again == rule;
  });
  definition["kind"] = kind;
  return definition;
}

void add_rules(const State& state, json& all) {
  for (const auto& [path, queue] : state.rules.queues)
    all.push_back(definition_of(queue, placement::read_queue, "queue"));
  for (const auto& [subject, quota] : state.rules.quotas)
    all.push_back(definition_of(quota, placement::read_quota, "quota"));
}

void add_apps(const State& state, const engine::Caller& caller, json& all) {
  const auto is_his = [&](uid_t owner) { return caller.is_root() || owner == caller.user.uid; };
  for (const auto& [id, record] : state.services) {
    if (record.removed || !is_his(record.target.task.owner)) continue;
    auto app = definition_of(record.target);
    say_user(app, "user", caller, record.target.task);
    app["kind"] = "app";
    all.push_back(std::move(app));
  }
  // Groups come to be with their apps, but for what they are started after.
  for (const auto& [path, group] : state.groups)
    if (!group.dependencies.empty() && is_his(group.owner))
      all.push_back({{"kind", "group"}, {"id", path}, {"dependencies", group.dependencies}});
}

/// Parents stand before those that run after them.
void add_jobs(const State& state, const Request& request, json& all) {
  std::set<std::string> seen;
  std::vector<const control::ScheduleRecord*> ordered;
  std::vector<std::pair<const control::ScheduleRecord*, bool>> open;
  chronos::each_job(state, request,
                    [&](const control::ScheduleRecord& job) { open.emplace_back(&job, false); });
  std::ranges::reverse(open);
  while (!open.empty()) {
    const auto [job, parents_done] = open.back();
    open.pop_back();
    if (parents_done) {
      ordered.push_back(job);
      continue;
    }
    if (!seen.insert(job->schedule.name).second) continue;
    open.emplace_back(job, true);
    for (const auto& parent : job->schedule.parents)
      if (const auto found = state.schedules.find(parent);
          found != state.schedules.end() && chronos::may_use(request, found->second))
        open.emplace_back(&found->second, false);
  }
  for (const auto* job : ordered) {
    auto definition = definition_of(*job);
    say_user(definition, "runAsUser", *request.caller, job->schedule.task);
    definition["kind"] = "job";
    all.push_back(std::move(definition));
  }
}

/// How much there is that no definition makes again.
json left_out(const State& state, const engine::Caller& caller) {
  std::size_t tasks = 0;
  for (const auto& [id, record] : state.tasks)
    if (!control::is_final(record.state) && record.task.origin.kind == workload::OriginKind::kPerson &&
        engine::may_see(caller, record))
      ++tasks;
  const auto frameworks = std::ranges::count_if(state.frameworks, [&](const auto& row) {
    return !row.second.removed_at && (caller.is_root() || row.second.owner == caller.user.uid);
  });
  return {{"tasks", tasks}, {"frameworks", frameworks}};
}

}  // namespace

Result<Write> export_definitions(const Services& services, const Request& request) {
  DROVER_CHECK_OK(Query(request).finish());
  return [state = services.decisions->snapshot(), request]() -> Result<Response> {
    const auto& caller = *request.caller;
    json all = json::array();
    if (caller.is_root()) add_rules(*state, all);  // nobody else may set them
    add_apps(*state, caller, all);
    add_jobs(*state, request, all);
    return json_response({{"definitions", std::move(all)}, {"left_out", left_out(*state, caller)}});
  };
}

}  // namespace drover::api
