#include "control/submission.h"

#include <fmt/format.h>

#include <set>
#include <span>

#include "control/admission.h"
#include "control/dependencies.h"

namespace drover::control {
namespace {

using workload::kMaxPriority;
using workload::kMinPriority;

Status check_priority(const placement::Rules& rules, const workload::Task& task) {
  if (task.priority < kMinPriority || task.priority > kMaxPriority)
    return fail(ErrorKind::kInvalid, fmt::format("There is no priority {}", task.priority),
                fmt::format("give one from {} to {}", kMinPriority, kMaxPriority), "/priority");
  if (task.owner == 0) return {};
  const auto quota = rules.quotas.find({placement::SubjectKind::kUser, task.owner_name});
  const int highest = quota == rules.quotas.end() ? 0 : quota->second.max_priority.value_or(0);
  if (task.priority <= highest) return {};
  return fail(
      ErrorKind::kPermissionDenied,
      fmt::format("'{}' may ask for priority {} at most, not {}", task.owner_name, highest, task.priority),
      "root can allow more: drover quota", "/priority");
}

Status check_queue(const placement::Rules& rules, const workload::Task& task) {
  auto usable = placement::may_use(rules, task.queue, task.owner_name);
  if (usable || (task.owner == 0 && usable.error().kind == ErrorKind::kPermissionDenied)) return {};
  usable.error().path = "/queue";
  return usable;
}

/// Services go on until somebody ends them.
Status check_times(const placement::Rules& rules, const workload::Task& task) {
  const auto most = placement::time_limits(rules, task.queue);
  const auto check = [&](const auto& asked, const auto& limit, const char* field,
                         const char* what) -> Status {
    if (!asked || !limit || *asked <= *limit) return {};
    return fail(ErrorKind::kInvalid,
                fmt::format("The queue '{}' lets {} {} at most, and {} are asked for", task.queue, what,
                            exact_duration(*limit), exact_duration(*asked)),
                "ask for no more, or use another queue", fmt::format("/{}", field));
  };
  DROVER_CHECK_OK(check(task.timeout, most.timeout, "timeout", "tasks run for"));
  return check(task.batch.idle_timeout, most.idle_timeout, "idle_timeout", "GPUs be idle for");
}

void limit_times(const placement::Rules& rules, workload::Task& task) {
  const auto most = placement::time_limits(rules, task.queue);
  if (!task.timeout) task.timeout = most.timeout;
  if (!task.batch.idle_timeout && task.resources.gpu_count() > 0) task.batch.idle_timeout = most.idle_timeout;
}

/// What is used beyond what was asked for is not counted: where that has a limit, nothing may be.
Status check_limits(const placement::Rules& rules, const workload::Task& task) {
  const auto refuse = [](const std::string& whose, const char* what, const char* field) {
    return fail(
        ErrorKind::kInvalid,
        fmt::format("{} has a limit on {}, so its tasks may use no more than they ask for", whose, what),
        "ask for more, and leave the limit out", fmt::format("/limits/{}", field));
  };
  for (const auto& [whose, limit] : bounds_on(rules, task.queue, task.owner_name, task.name_space)) {
    if (limit.milli_cpus && task.may_exceed_cpus()) return refuse(whose, "CPUs", "cpus");
    if (limit.memory_bytes && task.may_exceed_memory()) return refuse(whose, "memory", "memory");
  }
  return {};
}

/// The members of a gang are one job: what places it in the queue is the same for all.
Status check_unity(const std::vector<workload::Task>& tasks) {
  const auto& first = tasks.front();
  for (std::size_t rank = 1; rank < tasks.size(); ++rank) {
    const auto& task = tasks[rank];
    const char* differs = task.queue != first.queue                             ? "queue"
                          : task.name_space != first.name_space                 ? "namespace"
                          : task.priority != first.priority                     ? "priority"
                          : task.timeout != first.timeout                       ? "timeout"
                          : task.batch.idle_timeout != first.batch.idle_timeout ? "idle_timeout"
                          : task.batch.after != first.batch.after               ? "after"
                          : task.batch.begin != first.batch.begin               ? "begin"
                          : task.batch.retries != first.batch.retries           ? "retries"
                          : task.batch.requeue != first.batch.requeue           ? "requeue"
                                                                                : nullptr;
    if (differs != nullptr)
      return fail(ErrorKind::kInvalid, fmt::format("The members of a gang have one {}", differs),
                  "give all the same", fmt::format("/members/{}/{}", rank, differs));
  }
  return {};
}

/// Drover itself listens there, with rights that the kernel would not give the user.
Status check_ports(const workload::Task& task) {
  constexpr int kFirstForAll = 1024;
  if (task.owner == 0) return {};
  for (const auto& port : task.network.ports)
    if (port.host_port != 0 && port.host_port < kFirstForAll)
      return fail(ErrorKind::kPermissionDenied,
                  fmt::format("The port {} of the machine is for root alone", port.host_port),
                  fmt::format("ask for one from {} on", kFirstForAll), "/network/ports");
  return {};
}

Status check_privileged(const workload::Task& task, bool allowed) {
  if (!task.privileged) return {};
  if (!allowed)
    return fail(ErrorKind::kInvalid,
                "Privileged containers are not allowed here: they see all GPUs, and every other device of "
                "the machine",
                "leave 'privileged' out: a task has its own GPUs without it", "/privileged");
  if (task.image && task.container_type != workload::ContainerType::kMesos) return {};
  return fail(ErrorKind::kInvalid, "Only containers of a Docker Engine can be privileged",
              "name an image, and no other container type than DOCKER", "/privileged");
}

/// Two that want the same port of the machine can never run together.
Status check_named_ports(const std::vector<workload::Task>& members) {
  using workload::PortProtocol;
  std::set<int> tcp, udp;
  for (const auto& member : members)
    for (const auto& port : member.network.ports) {
      if (port.host_port == 0) continue;
      bool twice = port.protocol != PortProtocol::kUdp && !tcp.insert(port.host_port).second;
      if (port.protocol != PortProtocol::kTcp && !udp.insert(port.host_port).second) twice = true;
      if (twice)
        return fail(ErrorKind::kInvalid,
                    fmt::format("The port {} of the machine is asked for twice", port.host_port),
                    "ask for another, or for any with 0", "/network/ports");
    }
  return {};
}

Status check_images(const Draft& draft, const std::vector<workload::Task>& tasks) {
  for (const auto& task : tasks) {
    const auto* fit = find_fit(draft.images(), task);
    if (fit == nullptr) continue;
    if (auto why = refusal(*fit, task))
      return fail(ErrorKind::kInvalid, fmt::format("Image '{}' cannot run here: {}", *task.image, *why),
                  "'drover image variants' explains the choice",
                  tasks.size() == 1 ? "/image" : fmt::format("/members/{}/image", task.gang->rank));
  }
  return {};
}

/// It may be for an image that GPUs are too few.
void add_reasons_of_images(const Draft& draft, const std::vector<workload::Task>& tasks, Error& error) {
  std::set<std::string> told;
  for (const auto& task : tasks) {
    const auto* fit = find_fit(draft.images(), task);
    if (fit == nullptr || fit->with_gpus.empty() || task.resources.gpu_count() == 0) continue;
    if (told.insert(*task.image).second)
      error.message += fmt::format("; of image '{}', {}", *task.image, fit->with_gpus);
  }
}

/// What only the daemon of one machine has.
Status check_machines_own(const workload::Task& task) {
  if (task.resources.wants_parts())
    return fail(ErrorKind::kInvalid, "Parts of GPUs are not given to tasks that a cluster places",
                "there a pod asks for them by a claim, or by nvidia.com/mig-…",
                task.resources.part.empty() ? "/share_by" : "/part");
  if (task.resources.by_mps())
    return fail(ErrorKind::kInvalid, "MPS is not had by tasks that a cluster places",
                "there a claim asks for it, by its configuration", "/share_by");
  return {};
}

/// All tasks of a group that have its GPUs at once share them in one way.
Status check_group(const Draft& draft, const workload::Task& task) {
  const auto& wanted = task.resources;
  if (wanted.group.empty()) return {};
  for (const auto* record : draft.active()) {
    const auto& other = record->task;
    const bool by_mps = other.resources.by_mps();
    if (other.owner != task.owner || other.resources.group != wanted.group || by_mps == wanted.by_mps())
      continue;
    return fail(ErrorKind::kConflict,
                fmt::format("The group '{}' has its GPUs {}, and task '{}' of it runs", wanted.group,
                            by_mps ? "by MPS" : "without MPS", other.id),
                by_mps ? "say it too: share_by mps" : "use another group, or leave share_by out",
                "/share_by");
  }
  return {};
}

Status check(const Draft& draft, const std::vector<workload::Task>& tasks, const placement::Job& job) {
  DROVER_CHECK_OK(check_unity(tasks));
  for (const auto& task : tasks) {
    DROVER_CHECK_OK(check_rights(draft, task));
    DROVER_CHECK_OK(check_limits(draft.rules(), task));
    DROVER_CHECK_OK(check_group(draft, task));
  }
  DROVER_CHECK_OK(check_named_ports(tasks));
  DROVER_CHECK_OK(tasks.size() == 1 ? placement::validate(job.gang.members.front())
                                    : placement::validate(job.gang));
  DROVER_CHECK_OK(check_images(draft, tasks));
  if (draft.base().placed_by_others)
    for (const auto& task : tasks) DROVER_CHECK_OK(check_machines_own(task));
  // A cluster without nodes may be one that makes them when they are needed.
  if (draft.base().placed_by_others && draft.base().cluster.size() <= 1) return {};
  auto possible = placement::possible(draft.cluster(), draft.rules(), job);
  if (!possible) add_reasons_of_images(draft, tasks, possible.error());
  return possible;
}

}  // namespace

Status check_rights(const Draft& draft, const workload::Task& task) {
  DROVER_CHECK_OK(check_ports(task));
  DROVER_CHECK_OK(check_privileged(task, draft.privileged_allowed()));
  DROVER_CHECK_OK(check_priority(draft.rules(), task));
  DROVER_CHECK_OK(check_times(draft.rules(), task));
  auto queue = check_queue(draft.rules(), task);
  // A cluster has queues beside ours, of which its scheduler knows.
  const bool may_be_there =
      draft.base().placed_by_others && !queue && queue.error().kind == ErrorKind::kNotFound;
  return may_be_there ? Status() : queue;
}

Status admissible(const Draft& draft, const std::vector<workload::Task>& tasks) {
  std::vector<TaskRecord> records(tasks.size());
  std::vector<const TaskRecord*> members;
  for (std::size_t rank = 0; rank < tasks.size(); ++rank) {
    records[rank].task = tasks[rank];
    records[rank].submitted_at = draft.now();
    members.push_back(&records[rank]);
  }
  return check(draft, tasks, draft.job_of_waiting(members));
}

Status submit(Draft& draft, const std::vector<workload::Task>& tasks) {
  if (tasks.empty()) return fail(ErrorKind::kInvalid, "A gang has at least one member", "", "/members");
  DROVER_CHECK_OK(admit(draft, tasks));
  std::vector<TaskRecord> records;
  for (const auto& task : tasks) {
    if (draft.find(task.id) != nullptr)
      return fail(ErrorKind::kConflict, fmt::format("There is a task '{}' already", task.id));
    TaskRecord record;
    record.task = task;
    limit_times(draft.rules(), record.task);
    record.submitted_at = draft.now();
    if (task.batch.begin && *task.batch.begin > draft.now()) record.not_before = task.batch.begin;
    DROVER_CHECK_OK(check_dependencies(draft, record));
    records.push_back(std::move(record));
  }
  // The tasks of an array are alike, and jobs of their own.
  const std::span alike(tasks.data(), tasks.front().batch.array ? 1 : tasks.size());
  std::vector<const TaskRecord*> members;
  for (std::size_t i = 0; i < alike.size(); ++i) members.push_back(&records[i]);
  DROVER_CHECK_OK(check(draft, {alike.begin(), alike.end()}, draft.job_of_waiting(members)));
  for (auto& record : records) draft.add(std::move(record));
  return {};
}

}  // namespace drover::control
