#include "kube/scheduler/sharing/pod_queue.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/shorten.h"
#include "kube/scheduler/fields.h"

namespace drover::kube::scheduler {
namespace {

using nlohmann::json;

constexpr std::array kForeign{"kueue.x-k8s.io/queue-name", "scheduling.volcano.sh/queue-name",
                              "kai.scheduler/queue"};

std::string of_ours(const Sharing& sharing, const QueueNames& names) {
  if (!names.own.empty()) return queue_path(names.own);
  for (const auto& name : names.foreign) {
    auto path = queue_path(name);
    if (sharing.rules.queues.contains(path) || sharing.refused_queues.contains(name)) return path;
  }
  return "";
}

}  // namespace

QueueNames read_queue_names(const json& object) {
  FieldReader reader;
  const auto& metadata = reader.object(object, "metadata");
  const auto labels = reader.text_map(metadata, "labels");
  const auto annotations = reader.text_map(metadata, "annotations");
  const auto named = [&](std::string_view key) {
    for (const auto* const map : {&labels, &annotations})
      if (const auto found = map->find(key); found != map->end()) return found->second;
    return std::string();
  };
  QueueNames names{named(kQueueLabel), {}};
  for (const auto* const key : kForeign)
    if (auto name = named(key); !name.empty()) names.foreign.push_back(std::move(name));
  return names;
}

std::string queue_of(const Sharing& sharing, const QueueNames& pod, const QueueNames& name_space) {
  for (const auto* const names : {&pod, &name_space})
    if (auto path = of_ours(sharing, *names); !path.empty()) return path;
  return std::string(placement::kDefaultQueue);
}

Status may_stand(const Sharing& sharing, const std::string& queue, const std::string& name_space,
                 std::int64_t priority) {
  for (auto at = std::string_view(queue); !at.empty(); at = placement::parent_of(at))
    if (const auto found = sharing.refused_queues.find(queue_name(at)); found != sharing.refused_queues.end())
      return fail(ErrorKind::kInvalid,
                  fmt::format("the queue '{}' is not accepted: {}", shortened(queue_name(at)), found->second),
                  "the cluster's administrator has to mend the Queue");
  if (const auto found = sharing.refused_quotas.find(name_space); found != sharing.refused_quotas.end())
    return fail(ErrorKind::kInvalid,
                fmt::format("the quota of the namespace '{}' is not accepted: {}", name_space, found->second),
                "the cluster's administrator has to mend the Quota");
  if (auto may = placement::may_use(sharing.rules, queue, name_space); !may) {
    auto error = std::move(may).error();
    if (error.kind == ErrorKind::kNotFound)  // paths are told of as objects are named
      return fail(error.kind, queue_name(error.message), queue_name(error.hint));
    return fail(ErrorKind::kPermissionDenied,
                fmt::format("the namespace '{}' may not put pods into the queue '{}'", name_space,
                            shortened(queue_name(queue))),
                "ask the cluster's administrator to name it in the Queue, or name another queue");
  }
  const auto most = sharing.most_priority.find(name_space);
  if (most == sharing.most_priority.end() || priority <= most->second) return {};
  return fail(ErrorKind::kPermissionDenied,
              fmt::format("pods of the namespace '{}' may have a priority of {} at most, and this one has {}",
                          name_space, most->second, priority),
              "name a PriorityClass with a lower value");
}

}  // namespace drover::kube::scheduler
