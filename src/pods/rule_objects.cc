#include "pods/rule_objects.h"

#include <fmt/format.h>

#include <algorithm>

#include "kube/scheduler/sharing/rules.h"
#include "pods/pod_view.h"
#include "pods/pod_writer.h"

namespace drover::pods {
namespace {

using nlohmann::json;
using placement::Limits;
namespace scheduler = kube::scheduler;

constexpr std::size_t kLongestName = 63;  // labels of pods name it

bool is_name(std::string_view path) {
  if (path.size() > kLongestName) return false;
  for (std::size_t begin = 0; begin <= path.size();) {
    const auto end = std::min(path.find('/', begin), path.size());
    if (!is_dns_label(path.substr(begin, end - begin))) return false;
    begin = end + 1;
  }
  return true;
}

json amounts(const Limits& limits) {
  json written = json::object();
  if (limits.gpu_milli)
    written["gpus"] = *limits.gpu_milli % 1000 == 0 ? std::to_string(*limits.gpu_milli / 1000)
                                                    : fmt::format("{}m", *limits.gpu_milli);
  if (limits.milli_cpus) written["cpus"] = fmt::format("{}m", *limits.milli_cpus);
  if (limits.memory_bytes) written["memory"] = std::to_string(*limits.memory_bytes);
  return written;
}

RuleObject object_of(const kube::Resource& resource, const char* kind, const std::string& name,
                     const std::string& journal, json spec) {
  return {
      {resource, "", name},
      {{"apiVersion", fmt::format("{}/{}", resource.group, resource.version)},
       {"kind", kind},
       {"metadata",
        {{"name", name}, {"labels", {{kJournalLabel, journal}, {"app.kubernetes.io/managed-by", "drover"}}}}},
       {"spec", std::move(spec)}}};
}

}  // namespace

Status check_rules(const placement::Rules& rules, const PodSettings& settings) {
  for (const auto& [path, queue] : rules.queues) {
    if (!is_name(path))
      return fail(
          ErrorKind::kUnsupported,
          fmt::format("On a cluster no queue can be called '{}': its name has small letters, digits and "
                      "'-' between the slashes, and {} of them at most",
                      path, kLongestName),
          "give it another name", "/queues");
    if (queue.most.idle_timeout && !settings.node_sandboxes)
      return fail(
          ErrorKind::kUnsupported,
          fmt::format("Nobody looks whether GPUs do nothing, which the queue '{}' has a limit for", path),
          kIdleHint, "/queues");
  }
  for (const auto& [subject, quota] : rules.quotas)
    if (subject.kind == placement::SubjectKind::kNamespace)
      return fail(ErrorKind::kUnsupported,
                  fmt::format("On a cluster quotas are of users, and '{}' is a namespace", subject.name),
                  "set a limit on a queue instead", "/quotas");
  if (!rules.cordons.empty())
    return fail(ErrorKind::kUnsupported, "On a cluster nodes are cordoned where they are",
                "'kubectl cordon' a node");
  return {};
}

std::vector<RuleObject> write_rules(const placement::Rules& rules, const std::string& journal,
                                    const NameSpaceOf& name_space_of) {
  std::vector<RuleObject> objects;
  for (const auto& [path, queue] : rules.queues) {
    json spec = {
        {"limit", amounts(queue.limit)}, {"guarantee", amounts(queue.guarantee)}, {"weight", queue.weight}};
    for (const auto& user : queue.users) spec["namespaces"].push_back(name_space_of(user));
    objects.push_back(
        object_of(scheduler::kQueues, "Queue", scheduler::queue_name(path), journal, std::move(spec)));
  }
  for (const auto& [subject, quota] : rules.quotas) {
    json spec = {{"limit", amounts(quota.limit)}};
    if (quota.max_priority) spec["maxPriority"] = *quota.max_priority;
    objects.push_back(
        object_of(scheduler::kQuotas, "Quota", name_space_of(subject.name), journal, std::move(spec)));
  }
  return objects;
}

}  // namespace drover::pods
