#include "pods/forecast.h"

#include <algorithm>
#include <set>
#include <utility>

#include "kube/scheduler/claims/claim.h"
#include "kube/scheduler/labels.h"
#include "kube/scheduling/cluster_answers.h"
#include "kube/scheduling/cluster_reading.h"
#include "pods/gpu_claim.h"
#include "pods/pod_view.h"

namespace drover::pods {
namespace {

using kube::scheduler::Scheduler;
using nlohmann::json;

/// The pod with what the API server would add: by what it is ordered.
Result<json> planned_pod(const workload::Task& task, const PodSettings& settings, TimePoint now) {
  const std::map<std::string, std::string> none;
  auto pod = write_pod({.task = task, .environment = none}, settings);
  if (!pod) return Failure(join(pod.error()));
  auto& metadata = pod->at("metadata");
  metadata["uid"] = "planned-" + metadata.at("name").get<std::string>();
  metadata["creationTimestamp"] = format_time(now);
  pod->at("spec")["priority"] = task.priority;
  return std::move(*pod);
}

/// The claim that it waits for, unless its group has it.
Status put_claim(const json& pod, Scheduler& scheduler) {
  auto claim = write_claim(pod);
  if (claim.is_null()) return {};
  auto& metadata = claim.at("metadata");
  if (scheduler.has_claim(kube::text_at(claim, "/metadata/namespace"),
                          kube::text_at(claim, "/metadata/name")))
    return {};
  metadata["uid"] = "planned-" + metadata.at("name").get<std::string>();
  DROVER_TRY(auto read, kube::scheduler::read_resource_claim(claim));
  scheduler.put_claim(std::move(read));
  return {};
}

/// The task whose pod it is; "": it is none of ours.
std::string task_of(const Scheduler& scheduler, const std::string& full_name, const std::string& journal) {
  const auto slash = full_name.find('/');
  const auto uid = scheduler.uid_of(full_name.substr(0, slash), full_name.substr(slash + 1));
  const auto* const object = scheduler.find_pod(uid);
  if (object == nullptr || !object->pod.labels) return "";
  const auto* const of = kube::scheduler::label(*object->pod.labels, kJournalLabel);
  const auto* const task = kube::scheduler::label(*object->pod.labels, kTaskLabel);
  return of != nullptr && *of == journal && task != nullptr ? *task : "";
}

placement::Decision decision_of(const json& answer) {
  placement::Decision decision;
  decision.node = answer.at("node");
  for (const auto& uuid : answer.at("gpus")) decision.gpus.push_back({uuid.get<std::string>()});
  return decision;
}

}  // namespace

Result<placement::Forecast> forecast(kube::Api& api, const std::vector<workload::Task>& tasks,
                                     const ForecastOptions& options, TimePoint now) {
  const auto& settings = options.pods;
  const kube::scheduler::SchedulerOptions deciding{.name = settings.scheduler,
                                                   .gpu_resource = settings.gpu_resource,
                                                   .policy = options.policy,
                                                   .version = options.version};
  Scheduler scheduler(deciding);
  // What nobody can read counts as absent, as for the scheduler, whose log tells of it.
  DROVER_CHECK_OK(kube::read_cluster(
      api, {.version = options.version, .patience = options.patience, .warn = [](const auto&) {}},
      scheduler));
  std::vector<std::string> uids;
  for (const auto& task : tasks) {
    DROVER_TRY(const auto pod, planned_pod(task, settings, now));
    DROVER_TRY(auto read, kube::scheduler::read_pod_object(pod, options.version));
    uids.push_back(read.pod.uid);
    DROVER_CHECK_OK(put_claim(pod, scheduler));
    scheduler.put_pod(std::move(read));
  }
  const kube::ClusterAnswers answers(scheduler, deciding, now);
  placement::Forecast forecast;
  std::set<std::string> ended;
  for (const auto& uid : uids) {
    const auto answer = answers.of_pod(uid);
    if (answer.at("state") == "starts") {
      forecast.decisions.push_back(decision_of(answer));
      continue;
    }
    for (const auto& pod : answer.value("ends", json::array())) ended.insert(pod.get<std::string>());
    if (!forecast.reasons.empty()) continue;
    forecast.reasons = {answer.value("message", "")};
    forecast.remedies = answer.value("remedies", std::vector<std::string>());
    forecast.place = answer.value("place", 0);
  }
  if (forecast.decisions.size() < tasks.size()) forecast.decisions.clear();
  for (const auto& pod : ended) forecast.ended.push_back(task_of(scheduler, pod, settings.journal));
  return forecast;
}

}  // namespace drover::pods
