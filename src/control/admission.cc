#include "control/admission.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "workload/task_writer.h"

namespace drover::control {
namespace {

/// A user who is over the limit is brought below it by this part of it, so that not every submission of his
/// looks for what it can do without.
constexpr std::uint64_t kRoomPart = 8;

Status check_definition(const UserLimits& limits, std::uint64_t bytes, const std::string& what) {
  if (bytes <= limits.definition_bytes) return {};
  return fail(ErrorKind::kInvalid,
              fmt::format("The definition of {} has {} bytes, and {} are allowed", what, bytes,
                          limits.definition_bytes),
              "bring what is large as a file; " + allow_more(&UserLimits::definition_bytes));
}

/// Whether `more` bytes are still allowed to an owner who has `own` that cannot go.
Status check_bytes(const Draft& draft, const std::string& owner, std::uint64_t own, std::uint64_t more) {
  const auto limit = draft.limits().stored_bytes;
  if (own + more <= limit) return {};
  return fail(ErrorKind::kExhausted,
              fmt::format("The definitions of '{}' would take {}, and {} are allowed", owner,
                          format_bytes(own + more), format_bytes(limit)),
              "wait until some tasks have ended, or remove some; " + allow_more(&UserLimits::stored_bytes));
}

/// Forgets the tasks of the owner that ended first, until `bytes` fewer are kept.
void forget_ended(Draft& draft, uid_t owner, std::uint64_t bytes) {
  std::uint64_t gained = 0;
  for (const auto& [at, id] : draft.base().ended) {
    if (gained >= bytes) return;
    const auto& task = draft.base().tasks.at(id).task;
    if (task.owner != owner || task.origin.kind == workload::OriginKind::kService) continue;
    gained += stored_bytes(task);
    draft.remove(id);
  }
}

void make_room_for_definitions(Draft& draft, uid_t owner, std::uint64_t own, std::uint64_t ended) {
  const auto limit = draft.limits().stored_bytes;
  const auto room = limit - std::min(limit, own);
  if (ended > room) forget_ended(draft, owner, ended - room + limit / kRoomPart);
}

std::uint64_t bytes_of(const workload::Service& service) {
  const auto instances = static_cast<std::uint64_t>(service.instances);
  return kRecordBytes + service.definition.size() + (instances + 1) * stored_bytes(service.task);
}

/// With what is remembered of it.
std::uint64_t bytes_of(const ServiceRecord& record) {
  auto bytes = bytes_of(record.target);
  for (const auto& version : record.versions) bytes += version.definition.size() + stored_bytes(version.task);
  return bytes;
}

struct ServiceUsage {
  std::string owner_name;
  std::uint64_t instances = 0;
  std::uint64_t bytes = 0;
};

/// What those whose services and groups change would have.
std::map<uid_t, ServiceUsage> usage_after(const Draft& draft, const event::ServicesChanged& change) {
  std::map<uid_t, ServiceUsage> usages;
  std::set<std::string> put;
  for (const auto& service : change.put) {
    put.insert(service.id);
    auto& usage = usages[service.task.owner];
    usage.owner_name = service.task.owner_name;
    usage.instances += static_cast<std::uint64_t>(service.instances);
    usage.bytes += bytes_of(service);
  }
  if (!change.groups.empty())
    usages.try_emplace(change.owner, ServiceUsage{std::to_string(change.owner), 0, 0});
  draft.services.each([&](const std::string& id, const ServiceRecord& record) {
    const auto found = usages.find(record.target.task.owner);
    if (found == usages.end()) return;
    found->second.owner_name = record.target.task.owner_name;
    found->second.bytes += bytes_of(record);
    if (put.contains(id)) {
      const auto old = record.target;
      found->second.bytes -= static_cast<std::uint64_t>(old.instances) * stored_bytes(old.task);
    } else if (!record.removed) {
      found->second.instances += static_cast<std::uint64_t>(record.target.instances);
    }
  });
  std::map<std::string, uid_t> groups;
  draft.groups.each([&](const std::string& id, const GroupRecord& group) { groups[id] = group.owner; });
  for (const auto& [id, group] : change.groups)
    if (group) groups[id] = group->owner;
  for (const auto& [id, owner] : groups)
    if (const auto found = usages.find(owner); found != usages.end()) found->second.bytes += kRecordBytes;
  return usages;
}

}  // namespace

Status admit(Draft& draft, const std::vector<workload::Task>& tasks) {
  const auto& limits = draft.limits();
  const auto& owner = tasks.front();
  std::uint64_t bytes = 0;
  for (const auto& task : tasks) {
    const auto size = workload::definition_bytes(task);
    if (auto small = check_definition(limits, size, fmt::format("the task '{}'", task.name)); !small) {
      if (tasks.size() > 1) small.error().path = fmt::format("/members/{}", &task - tasks.data());
      return small;
    }
    bytes += kRecordBytes + size;
  }
  if (owner.owner == 0) return {};
  const auto usage = draft.usage(owner.owner);
  if (usage.waiting + tasks.size() > limits.waiting_tasks)
    return fail(ErrorKind::kExhausted,
                fmt::format("'{}' has {} waiting tasks, and {} are allowed", owner.owner_name, usage.waiting,
                            limits.waiting_tasks),
                "wait until some have started, or stop some; " + allow_more(&UserLimits::waiting_tasks));
  DROVER_CHECK_OK(check_bytes(draft, owner.owner_name, usage.live_bytes, bytes));
  make_room_for_definitions(draft, owner.owner, usage.live_bytes + bytes, usage.ended_bytes);
  return {};
}

Status admit(const Draft& draft, const event::ServicesChanged& change) {
  const auto& limits = draft.limits();
  for (const auto& service : change.put)
    DROVER_CHECK_OK(check_definition(
        limits, std::max<std::uint64_t>(workload::definition_bytes(service.task), service.definition.size()),
        fmt::format("the service '{}'", service.id)));
  for (const auto& [owner, usage] : usage_after(draft, change)) {
    if (owner == 0) continue;
    if (usage.instances > limits.waiting_tasks)
      return fail(ErrorKind::kExhausted,
                  fmt::format("The services of '{}' would have {} instances, and {} are allowed",
                              usage.owner_name, usage.instances, limits.waiting_tasks),
                  "ask for fewer; " + allow_more(&UserLimits::waiting_tasks));
    DROVER_CHECK_OK(check_bytes(draft, usage.owner_name, 0, usage.bytes));
  }
  return {};
}

Status admit(const Draft& draft, const workload::Schedule& schedule) {
  const auto size_of = [](const workload::Schedule& one) {
    return kRecordBytes + one.definition.size() + stored_bytes(one.task);
  };
  DROVER_CHECK_OK(check_definition(
      draft.limits(),
      std::max<std::uint64_t>(workload::definition_bytes(schedule.task), schedule.definition.size()),
      fmt::format("the job '{}'", schedule.name)));
  if (schedule.task.owner == 0) return {};
  std::uint64_t own = 0;
  draft.schedules.each([&](const std::string& name, const ScheduleRecord& record) {
    if (record.schedule.task.owner == schedule.task.owner && name != schedule.name)
      own += size_of(record.schedule);
  });
  return check_bytes(draft, schedule.task.owner_name, own, size_of(schedule));
}

Status admit(Draft& draft, const FrameworkRecord& framework) {
  const auto& limits = draft.limits();
  DROVER_CHECK_OK(
      check_definition(limits, framework.info.size(), fmt::format("the framework '{}'", framework.name)));
  if (framework.owner == 0) return {};
  std::uint64_t living = 0;
  std::vector<std::pair<TimePoint, std::string>> removed;
  draft.frameworks.each([&](const std::string& id, const FrameworkRecord& record) {
    if (record.owner != framework.owner) return;
    if (record.removed_at)
      removed.emplace_back(*record.removed_at, id);
    else
      ++living;
  });
  if (living >= limits.frameworks)
    return fail(ErrorKind::kExhausted,
                fmt::format("'{}' has {} frameworks, and {} are allowed", framework.owner_name, living,
                            limits.frameworks),
                "tear some down; " + allow_more(&UserLimits::frameworks));
  std::ranges::sort(removed);
  for (std::size_t i = 0; i + limits.frameworks <= removed.size(); ++i)
    draft.frameworks.remove(removed[i].second);
  return {};
}

}  // namespace drover::control
