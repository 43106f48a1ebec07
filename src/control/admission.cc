#include "control/admission.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/units.h"
#include "workload/task_writer.h"

namespace drover::control {
namespace {

/// Who is over a limit is brought below it by this part of it, so that not every submission looks for what it
/// can do without.
constexpr std::uint64_t kRoomPart = 8;
/// More go with the next submissions: when an administrator lowers a limit, nobody is kept waiting for it.
constexpr std::uint64_t kMostForgotten = 4096;

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
    gained += kRecordBytes + draft.sizes().of(task);
    draft.remove(id);
  }
}

void make_room_for_definitions(Draft& draft, uid_t owner, std::uint64_t own, std::uint64_t ended) {
  const auto limit = draft.limits().stored_bytes;
  const auto room = limit - std::min(limit, own);
  if (ended > room) forget_ended(draft, owner, ended - room + limit / kRoomPart);
}

/// What each user may keep at most so that all together have no more than `most`.
std::uint64_t fair_share(const Usages& usages, std::uint64_t Usage::* amount, std::uint64_t most) {
  std::vector<std::uint64_t> amounts;
  for (const auto& [owner, usage] : usages) amounts.push_back(usage.*amount);
  std::ranges::sort(amounts);
  for (std::size_t i = 0; i < amounts.size(); ++i) {
    const auto share = most / (amounts.size() - i);
    if (amounts[i] > share) return share;
    most -= amounts[i];
  }
  return std::numeric_limits<std::uint64_t>::max();
}

/// Where all have more than `room` of what has ended, those who have most lose what ended first. `amount`:
/// Usage::ended or ended_bytes.
void make_room_in_all(Draft& draft, std::uint64_t Usage::* amount, std::uint64_t room, std::uint64_t limit) {
  if (sum(draft.usages()).*amount <= room) return;
  const auto share = fair_share(draft.usages(), amount, room - std::min(room, limit / kRoomPart));
  auto usages = draft.usages();
  std::uint64_t gone = 0;
  for (const auto& [at, id] : draft.base().ended) {
    const auto& task = draft.base().tasks.at(id).task;
    if (task.origin.kind == workload::OriginKind::kService) continue;
    auto& kept = usages[task.owner].*amount;
    if (kept <= share) continue;
    kept -= amount == &Usage::ended ? 1 : kRecordBytes + draft.sizes().of(task);
    draft.remove(id);
    if (++gone == kMostForgotten) return;
  }
}

Failure too_many_in_all(const std::string& what, std::uint64_t UserLimits::* limit,
                        const UserLimits& limits) {
  return fail(ErrorKind::kExhausted, fmt::format("{}, and {} are allowed in all", what, limits.*limit),
              "remove what nobody needs; " + allow_more(limit));
}

Status check_bytes_of_all(const UserLimits& limits, const std::string& what, std::uint64_t bytes) {
  const auto limit = limits.all_stored_bytes;
  if (bytes <= limit) return {};
  return fail(ErrorKind::kExhausted,
              fmt::format("The definitions of all {} would take {}, and {} are allowed in all", what,
                          format_bytes(bytes), format_bytes(limit)),
              "remove what nobody needs; " + allow_more(&UserLimits::all_stored_bytes));
}

/// All users' tasks, with `count` new ones.
Status check_all(Draft& draft, std::uint64_t count, std::uint64_t bytes) {
  const auto& limits = draft.limits();
  const auto all = sum(draft.usages());
  if (all.live + count > limits.all_tasks)
    return too_many_in_all(fmt::format("{} tasks wait or run", all.live), &UserLimits::all_tasks, limits);
  DROVER_CHECK_OK(check_bytes_of_all(limits, "tasks", all.live_bytes + bytes));
  make_room_in_all(draft, &Usage::ended, limits.all_ended_tasks, limits.all_ended_tasks);
  make_room_in_all(draft, &Usage::ended_bytes, limits.all_stored_bytes - all.live_bytes - bytes,
                   limits.all_stored_bytes);
  return {};
}

/// Of all, as the draft has them.
Definitions definitions_of_all(const Draft& draft) {
  auto all = draft.base().definitions;
  const auto take_changes = [&](const auto& overlay, const auto& rows) {
    for (const auto& [id, after] : overlay.changes()) {
      if (const auto before = rows.find(id); before != rows.end()) all -= size_of(before->second);
      if (after) all += size_of(*after);
    }
  };
  take_changes(draft.services, draft.base().services);
  take_changes(draft.groups, draft.base().groups);
  take_changes(draft.schedules, draft.base().schedules);
  return all;
}

/// Whoever makes do with less than there was is not refused.
Status check_all(const Draft& draft, const Definitions& after) {
  const auto& limits = draft.limits();
  if (after.count <= limits.all_definitions && after.instances <= limits.all_tasks &&
      after.bytes <= limits.all_stored_bytes)
    return {};
  const auto before = definitions_of_all(draft);
  if (after.count > limits.all_definitions && after.count > before.count)
    return too_many_in_all(fmt::format("There would be {} apps, groups and jobs", after.count),
                           &UserLimits::all_definitions, limits);
  if (after.instances > limits.all_tasks && after.instances > before.instances)
    return too_many_in_all(fmt::format("All apps would have {} instances", after.instances),
                           &UserLimits::all_tasks, limits);
  return after.bytes > before.bytes ? check_bytes_of_all(limits, "apps and jobs", after.bytes) : Status{};
}

Status check_all(const Draft& draft, const event::ServicesChanged& change) {
  auto after = definitions_of_all(draft);
  const auto leaves = [&](const std::string& service) {
    if (const auto* record = draft.services.find(service)) after -= size_of(record->target);
  };
  for (const auto& id : change.removed) leaves(id);
  for (const auto& service : change.put) {
    leaves(service.id);
    after += size_of(service);
  }
  for (const auto& [id, group] : change.groups) {
    if (const auto* record = draft.groups.find(id)) after -= size_of(*record);
    if (group) after += size_of(*group);
  }
  return check_all(draft, after);
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

struct Frameworks {
  std::uint64_t living = 0;
  std::vector<std::pair<TimePoint, std::string>> removed;
};

/// Of one owner, or of all.
Frameworks frameworks_of(const Draft& draft, std::optional<uid_t> owner) {
  Frameworks found;
  draft.frameworks.each([&](const std::string& id, const FrameworkRecord& record) {
    if (owner && record.owner != *owner) return;
    if (record.removed_at)
      found.removed.emplace_back(*record.removed_at, id);
    else
      ++found.living;
  });
  return found;
}

/// Those that were removed first go, until there are fewer than so many.
void forget_removed(Draft& draft, Frameworks frameworks, std::uint64_t most) {
  auto& removed = frameworks.removed;
  std::ranges::sort(removed);
  for (std::size_t i = 0; i + most <= removed.size() && i < kMostForgotten; ++i)
    draft.frameworks.remove(removed[i].second);
}

}  // namespace

Status admit(Draft& draft, const std::vector<workload::Task>& tasks) {
  const auto& limits = draft.limits();
  const auto& owner = tasks.front();
  std::uint64_t bytes = 0;
  for (const auto& task : tasks) {
    const auto size = draft.sizes().of(task);
    if (auto small = check_definition(limits, size, fmt::format("the task '{}'", task.name)); !small) {
      if (task.gang) small.error().path = fmt::format("/members/{}", &task - tasks.data());
      return small;
    }
    bytes += kRecordBytes + size;
  }
  DROVER_CHECK_OK(check_all(draft, tasks.size(), bytes));
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
  DROVER_CHECK_OK(check_all(draft, change));
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
  const auto own_bytes = [](const workload::Schedule& one) {
    return kRecordBytes + one.definition.size() + stored_bytes(one.task);
  };
  DROVER_CHECK_OK(check_definition(
      draft.limits(),
      std::max<std::uint64_t>(workload::definition_bytes(schedule.task), schedule.definition.size()),
      fmt::format("the job '{}'", schedule.name)));
  auto after = definitions_of_all(draft);
  if (const auto* known = draft.schedules.find(schedule.name)) after -= size_of(*known);
  after += size_of(schedule);
  DROVER_CHECK_OK(check_all(draft, after));
  if (schedule.task.owner == 0) return {};
  std::uint64_t own = 0;
  draft.schedules.each([&](const std::string& name, const ScheduleRecord& record) {
    if (record.schedule.task.owner == schedule.task.owner && name != schedule.name)
      own += own_bytes(record.schedule);
  });
  return check_bytes(draft, schedule.task.owner_name, own, own_bytes(schedule));
}

Status admit(Draft& draft, const FrameworkRecord& framework) {
  const auto& limits = draft.limits();
  DROVER_CHECK_OK(
      check_definition(limits, framework.info.size(), fmt::format("the framework '{}'", framework.name)));
  const auto all = frameworks_of(draft, std::nullopt);
  if (all.living >= limits.all_frameworks)
    return too_many_in_all(fmt::format("There are {} frameworks", all.living), &UserLimits::all_frameworks,
                           limits);
  forget_removed(draft, all, limits.all_frameworks);
  if (framework.owner == 0) return {};
  const auto own = frameworks_of(draft, framework.owner);
  if (own.living >= limits.frameworks)
    return fail(ErrorKind::kExhausted,
                fmt::format("'{}' has {} frameworks, and {} are allowed", framework.owner_name, own.living,
                            limits.frameworks),
                "tear some down; " + allow_more(&UserLimits::frameworks));
  forget_removed(draft, own, limits.frameworks);
  return {};
}

}  // namespace drover::control
