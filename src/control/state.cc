#include "control/state.h"

#include <algorithm>

#include "control/cordons.h"

namespace drover::control {
namespace {

/// When the task came to its end; none as long as it has not.
std::optional<TimePoint> end_of(const TaskRecord* record) {
  return record != nullptr && is_final(record->state) ? steady_end(*record) : std::nullopt;
}

void move(ByTime& index, const std::string& id, std::optional<TimePoint> from, std::optional<TimePoint> to) {
  if (from == to) return;
  if (from) index.erase({*from, id});
  if (to) index.insert({*to, id});
}

template <typename Key>
using Ids = SharedMap<Key, SharedSet<std::string>>;

template <typename Key>
void take_out(Ids<Key>& index, const Key& key, const std::string& id) {
  if (!index.contains(key)) return;
  auto& ids = index.edit(key);
  ids.erase(id);
  if (ids.empty()) index.erase(key);
}

/// The record as long as it waits, else null.
const TaskRecord* if_waiting(const TaskRecord* record) {
  return record != nullptr && record->state == TaskState::kQueued ? record : nullptr;
}

/// Keeps what holds tasks back; null: it is not there.
void index_holds(State& state, const std::string& id, const TaskRecord* before, const TaskRecord* after) {
  before = if_waiting(before);
  after = if_waiting(after);
  const auto of = [](const TaskRecord* record, auto member) {
    return record != nullptr ? record->*member : std::optional<TimePoint>();
  };
  move(state.begins, id, of(before, &TaskRecord::not_before), of(after, &TaskRecord::not_before));
  move(state.retries, id, of(before, &TaskRecord::retry_at), of(after, &TaskRecord::retry_at));
  if (before != nullptr)
    for (const auto& awaited : before->awaits) take_out(state.awaited, awaited.job, id);
  if (after != nullptr)
    for (const auto& awaited : after->awaits) state.awaited.edit(awaited.job).insert(id);
}

/// How long a job ran that came to its end by itself: that of a gang is told by its first member.
std::optional<std::chrono::milliseconds> run_time(const TaskRecord* record) {
  if (record == nullptr || (record->task.gang && record->task.gang->rank != 0)) return std::nullopt;
  const auto kind = record->task.origin.kind;
  const bool is_batch = kind == workload::OriginKind::kPerson || kind == workload::OriginKind::kSchedule;
  const bool by_itself = record->state == TaskState::kFinished ||
                         (record->state == TaskState::kFailed && record->exit_status && !record->timed_out);
  const auto start = steady_start(*record), end = steady_end(*record);
  if (!is_batch || !by_itself || !start || !end || *end < *start) return std::nullopt;
  return std::chrono::duration_cast<std::chrono::milliseconds>(*end - *start);
}

/// Keeps what is expected of tasks like this one.
void learn(placement::RunTimes& run_times, const TaskRecord* before, const TaskRecord* after) {
  const auto was = run_time(before), is = run_time(after);
  if (was == is) return;
  if (was) run_times.remove(kind_of(before->task), *was);
  if (is) run_times.add(kind_of(after->task), *is);
}

/// Keeps the indices by state.
void index(State& state, const TaskRecord* before, const TaskRecord& record,
           workload::DefinitionSizes& sizes) {
  const auto& id = record.task.id;
  move(state.ended, id, end_of(before), end_of(&record));
  if (record.state == TaskState::kQueued)
    state.queue.insert_or_assign(record.sequence, queued(record));
  else
    state.queue.erase(record.sequence);
  if (owns_resources(record.state))
    state.active.insert(id);
  else
    state.active.erase(id);
  index_holds(state, id, before, &record);
  learn(state.run_times, before, &record);
  if (record.task.origin.kind != workload::OriginKind::kPerson)
    state.by_origin.edit(origin_of(record.task)).insert(id);
  if (const auto& array = record.task.batch.array; array && before == nullptr)
    state.by_array.edit(array->id).insert(id);
  count(state.usages, before, &record, sizes);
  if (before == nullptr && !record.template_key.empty()) ++state.template_uses.edit(record.template_key);
  state.next_sequence = std::max(state.next_sequence, record.sequence + 1);
}

void forget(State& state, const std::string& id, workload::DefinitionSizes& sizes) {
  const auto found = state.tasks.find(id);
  if (found == state.tasks.end()) return;
  take_out(state.by_origin, origin_of(found->second.task), id);
  state.said.erase(id);
  move(state.ended, id, end_of(&found->second), std::nullopt);
  index_holds(state, id, &found->second, nullptr);
  learn(state.run_times, &found->second, nullptr);
  if (const auto& array = found->second.task.batch.array) take_out(state.by_array, array->id, id);
  count(state.usages, &found->second, nullptr, sizes);
  if (const auto& key = found->second.template_key;
      state.template_uses.contains(key) && --state.template_uses.edit(key) == 0)
    state.template_uses.erase(key);
  state.tasks.erase(found);
}

std::optional<TimePoint> next_time_of(const Rows<ScheduleRecord>& schedules, const std::string& name) {
  const auto found = schedules.find(name);
  return found == schedules.end() ? std::nullopt : next_time(found->second);
}

/// One that is gone stays as long as it has tasks.
void set_nodes(State& state, const std::vector<placement::Node>& nodes) {
  std::set<std::string> gone;
  for (auto& name : state.cluster.nodes())
    if (name != state.node) gone.insert(std::move(name));
  for (const auto& node : nodes) {
    gone.erase(node.name);
    const auto* known = state.cluster.node(node.name);
    if (known == nullptr || !(*known == node)) state.cluster.set_node(node);
  }
  for (const auto& name : gone) (void)state.cluster.remove_node(name);
}

}  // namespace

Queued queued(const TaskRecord& record) {
  const auto& task = record.task;
  Queued place{task.id, job_id(task), task.owner, task.queue, task.priority};
  place.gpus = !task.resources.gpus.empty();
  if (task.gang) place.rank = task.gang->rank;
  place.held = is_held(record);
  if (const auto& array = task.batch.array; array && array->at_once > 0) {
    place.array = array->id;
    place.at_once = array->at_once;
  }
  return place;
}

std::vector<const TaskRecord*> State::tasks_under(const std::string& id, const Find& find) const {
  if (const auto* record = find(id)) return {record};
  auto records = members_of_job(id, find);
  if (!records.empty()) return records;
  for (const auto& member : ids_in(by_array, id)) records.push_back(find(member));
  return records;
}

const SharedSet<std::string>& State::ids_in(const SharedMap<std::string, SharedSet<std::string>>& map,
                                            const std::string& key) {
  static const SharedSet<std::string> none;
  const auto found = map.find(key);
  return found == map.end() ? none : found->second;
}

placement::RunTimes::Kind kind_of(const workload::Task& task) {
  const auto members = static_cast<std::size_t>(task.gang ? task.gang->size : 1);
  return {task.owner_name, task.name, placement::RunTimes::size_of(members, task.resources)};
}

void apply(State& state, const Outcome& outcome) {
  if (outcome.node) state.cluster.set_node(*outcome.node);
  if (outcome.nodes) set_nodes(state, *outcome.nodes);
  if (outcome.rules) state.rules = *outcome.rules;
  if (outcome.positions) state.positions = Cow<QueuePositions>(*outcome.positions);
  std::map<std::string, const workload::Task*> jobs;
  workload::DefinitionSizes sizes;
  for (const auto& record : outcome.changed) {
    const auto* before = state.find(record.task.id);
    if (moved(before, record)) jobs.emplace(job_id(record.task), &record.task);
    index(state, before, record, sizes);
    state.tasks.insert_or_assign(record.task.id, record);
  }
  settle(state.cluster, state.node, jobs, state.finder());
  for (const auto& [name, fit] : outcome.images) {
    state.images.erase(name);
    if (fit && state.images.size() < kMostImages) state.images.emplace(name, *fit);
  }
  for (const auto& [id, health] : outcome.health) state.health.insert_or_assign(id, health);
  for (const auto& [id, why] : outcome.said) state.said.insert_or_assign(id, why);
  for (const auto& record : outcome.changed) {
    if (!owns_resources(record.state)) state.health.erase(record.task.id);
    // It has come on since.
    if (!record.asked) state.said.erase(record.task.id);
  }
  for (const auto& id : outcome.removed) forget(state, id, sizes);
  for (const auto& [name, record] : outcome.schedules)
    move(state.schedules_due, name, next_time_of(state.schedules, name),
         record ? next_time(*record) : std::nullopt);
  each_table(
      [&](const char*, auto& rows, const auto& changes) {
        for (const auto& [id, record] : changes) {
          if (const auto known = rows.find(id); known != rows.end())
            state.definitions -= size_of(known->second);
          if (record)
            rows.insert_or_assign(id, *record);
          else
            rows.erase(id);
          if (record) state.definitions += size_of(*record);
        }
      },
      static_cast<Tables<Rows>&>(state), static_cast<const Tables<Changes>&>(outcome));
}

State restore(Journaled journaled, placement::Node node, placement::NodePolicy policy) {
  State state;
  static_cast<Tables<Rows>&>(state) = std::move(journaled);
  for (const auto& [name, record] : state.schedules)
    move(state.schedules_due, name, std::nullopt, next_time(record));
  for (const auto& [id, record] : state.schedules) state.definitions += size_of(record);
  for (const auto& [id, record] : state.services) state.definitions += size_of(record);
  for (const auto& [id, record] : state.groups) state.definitions += size_of(record);
  state.next_sequence = journaled.next_sequence;
  state.forgotten = std::move(journaled.forgotten);
  state.unread = std::move(journaled.unread);
  state.unread_templates = std::move(journaled.unread_templates);
  state.node = node.name;
  state.cluster = placement::Cluster(policy);
  Outcome outcome;
  outcome.changed = std::move(journaled.records);
  outcome.node = with_cordons(std::move(node), journaled.rules);
  outcome.rules = std::move(journaled.rules);
  apply(state, outcome);
  return state;
}

}  // namespace drover::control
