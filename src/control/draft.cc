#include "control/draft.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <string_view>
#include <tuple>

#include "base/ids.h"

namespace drover::control {

Draft::Draft(const State& state, Moment now) : state_(state), now_(now) {
  each_table([](const char*, auto& overlay,
                const auto& rows) { overlay = std::remove_reference_t<decltype(overlay)>(rows); },
             static_cast<Tables<Overlay>&>(*this), static_cast<const Tables<Rows>&>(state));
}

const TaskRecord* Draft::find(const std::string& id) const {
  const auto changed = changed_.find(id);
  return changed != changed_.end() ? &changed->second : state_.find(id);
}

TaskRecord& Draft::change(const std::string& id) {
  if (const auto found = changed_.find(id); found != changed_.end()) return found->second;
  order_.push_back(id);
  return changed_.emplace(id, state_.tasks.at(id)).first->second;
}

void Draft::add(TaskRecord record) {
  record.sequence = state_.next_sequence + added_++;
  if (!workload::shares_template(record.task, keyed_)) {
    key_ = template_key_of(record.task);
    workload::take_template(keyed_, record.task);
  }
  record.template_key = key_;
  if (const auto& key = record.template_key; !key.empty()) {
    const auto [known, is_new] = added_templates_.emplace(key, record.task);
    if (!is_new) workload::take_template(record.task, known->second);
  }
  outcome_.added = true;
  if (!added_usages_) added_usages_ = state_.usages;
  count(*added_usages_, nullptr, &record, sizes_);
  const auto id = record.task.id;
  order_.push_back(id);
  changed_.emplace(id, std::move(record));
}

Usage Draft::usage(uid_t owner) const {
  const auto found = usages().find(owner);
  return found == usages().end() ? Usage{} : found->second;
}

void Draft::remove(const std::string& id) {
  if (!removed_.insert(id).second) return;
  outcome_.removed.push_back(id);
  const auto* record = find(id);
  act(action::Forget{id, record == nullptr ? 0 : record->task.owner});
}

std::string Draft::unused_id() {
  auto seed = static_cast<std::uint64_t>(now().time_since_epoch().count());
  for (auto number = state_.next_sequence + added_;; ++number)
    if (auto id = fmt::format("{:012x}", mix(seed, number) >> 16); find(id) == nullptr) return id;
}

std::vector<const TaskRecord*> Draft::tasks_of(const OriginName& origin) const {
  std::vector<const TaskRecord*> records;
  if (const auto found = state_.by_origin.find(origin); found != state_.by_origin.end())
    for (const auto& id : found->second) records.push_back(find(id));
  for (const auto& [id, record] : changed_)
    if (state_.find(id) == nullptr && origin_of(record.task) == origin) records.push_back(&record);
  std::erase_if(records, [&](const auto* record) { return removed_.contains(record->task.id); });
  std::ranges::sort(records, {}, &TaskRecord::sequence);
  return records;
}

std::vector<const TaskRecord*> Draft::changed() const {
  std::vector<const TaskRecord*> records;
  for (const auto& [id, record] : changed_)
    if (!removed_.contains(id)) records.push_back(&record);
  return records;
}

std::set<OriginName> Draft::touched() const {
  std::set<OriginName> origins;
  for (const auto& [id, record] : changed_) origins.insert(origin_of(record.task));
  for (const auto& [id, health] : outcome_.health) origins.insert(origin_of(find(id)->task));
  return origins;
}

std::vector<const TaskRecord*> Draft::just_ended() const {
  std::vector<const TaskRecord*> records;
  for (const auto& [id, record] : changed_) {
    const auto* before = state_.find(id);
    if (is_final(record.state) && (before == nullptr || !is_final(before->state))) records.push_back(&record);
  }
  return records;
}

const TaskHealth* Draft::health(const std::string& id) const {
  if (const auto found = outcome_.health.find(id); found != outcome_.health.end()) return &found->second;
  const auto found = state_.health.find(id);
  return found == state_.health.end() ? nullptr : &found->second;
}

void Draft::set_images(const std::map<ImageName, std::optional<ImageFit>>& images) {
  images_ = state_.images;
  for (const auto& [name, fit] : images) {
    images_->erase(name);
    if (fit) images_->emplace(name, *fit);
  }
  outcome_.images = images;
}

placement::Job Draft::job_of_waiting(const std::vector<const TaskRecord*>& members) const {
  auto job = job_of(members);
  for (std::size_t rank = 0; rank < members.size(); ++rank)
    narrow(job.gang.members[rank], members[rank]->task, images());
  job.expected = expected(members.front()->task);
  return job;
}

namespace {

/// How many more of each array may run.
class ArraySlots {
 public:
  explicit ArraySlots(const Draft& draft) : draft_(draft) {}

  bool take(const Queued& job) {
    if (!counted_) count();
    return taken_[job.array]++ < job.at_once;
  }

 private:
  void count() {
    counted_ = true;
    for (const auto* record : draft_.active())
      if (const auto& array = record->task.batch.array) ++taken_[array->id];
  }

  const Draft& draft_;
  bool counted_ = false;
  std::map<std::string, int> taken_;
};

}  // namespace

Draft::Waiting Draft::waiting() const {
  using Place = std::pair<std::uint64_t, const Queued*>;
  std::map<std::tuple<uid_t, std::string_view, bool>, std::vector<Place>> lines;
  ArraySlots slots(*this);
  std::vector<Place> held, of_arrays;
  const auto stand = [&](std::uint64_t sequence, const Queued& job) {
    lines[{job.owner, job.queue, job.gpus}].emplace_back(sequence, &job);
  };
  const auto line_up = [&](std::uint64_t sequence, const Queued& job) {
    if (job.rank != 0) return;
    if (job.held)
      held.emplace_back(sequence, &job);
    else if (job.at_once > 0)
      of_arrays.emplace_back(sequence, &job);
    else
      stand(sequence, job);
  };
  for (const auto& [sequence, job] : state_.queue)
    if (!changed_.contains(job.id)) line_up(sequence, job);
  std::deque<Queued> changed;
  for (const auto& [id, record] : changed_)
    if (record.state == TaskState::kQueued) line_up(record.sequence, changed.emplace_back(queued(record)));
  std::ranges::sort(of_arrays, {}, &Place::first);
  for (const auto& [sequence, job] : of_arrays)
    if (slots.take(*job))
      stand(sequence, *job);
    else
      held.emplace_back(sequence, job);
  Waiting waiting;
  std::vector<Place> behind;
  for (auto& [key, line] : lines) {
    if (line.size() > kPlannedOfUser) {
      const auto last = line.begin() + static_cast<std::ptrdiff_t>(kPlannedOfUser);
      std::ranges::nth_element(
          line, last, {}, [](const Place& place) { return std::pair(-place.second->priority, place.first); });
      behind.insert(behind.end(), last, line.end());
      line.erase(last, line.end());
    }
    for (const auto& [sequence, job] : line) {
      const auto* record = find(job->id);
      const auto members = record->task.gang ? members_of(record->task, finder()) : std::vector{record};
      if (waits_whole(members)) waiting.jobs.push_back(job_of_waiting(members));
    }
  }
  std::ranges::sort(behind, {}, &Place::first);
  for (const auto& [sequence, job] : behind) waiting.behind.emplace_back(sequence, job->job);
  std::ranges::sort(held, {}, &Place::first);
  for (const auto& [sequence, job] : held) waiting.held.push_back(job->job);
  return waiting;
}

std::vector<const TaskRecord*> Draft::active() const {
  std::vector<const TaskRecord*> records;
  for (const auto& id : state_.active)
    if (!changed_.contains(id)) records.push_back(state_.find(id));
  for (const auto& [id, record] : changed_)
    if (owns_resources(record.state)) records.push_back(&record);
  return records;
}

std::vector<placement::RunningJob> Draft::running() const {
  std::vector<placement::RunningJob> jobs;
  for (const auto* record : active())
    if (auto job = running_job(*record, machine(), finder(), now())) {
      job->job.expected = expected(record->task);
      jobs.push_back(std::move(*job));
    }
  return jobs;
}

placement::Cluster Draft::cluster() const {
  auto cluster = state_.cluster;
  if (outcome_.node) cluster.set_node(*outcome_.node);
  std::map<std::string, const workload::Task*> jobs;
  for (const auto& [id, record] : changed_)
    if (moved(state_.find(id), record)) jobs.emplace(job_id(record.task), &record.task);
  settle(cluster, state_.node, jobs, finder());
  return cluster;
}

bool Draft::plan_is_due() const {
  if (!state_.positions || outcome_.node || outcome_.rules || images_) return true;
  return std::any_of(changed_.begin(), changed_.end(), [&](const auto& entry) {
    const auto& [id, record] = entry;
    const auto* before = state_.find(id);
    const bool waited = before != nullptr && before->state == TaskState::kQueued;
    const bool owned = before != nullptr && owns_resources(before->state);
    if (waited && (is_held(*before) != is_held(record) || (before->asked && !record.asked))) return true;
    if (owned && before->task.resources.share != record.task.resources.share) return true;
    return waited != (record.state == TaskState::kQueued) || (owned && !owns_resources(record.state));
  });
}

void Draft::notify_moves() {
  for (const auto& id : order_) {
    const auto& record = changed_.at(id);
    const auto told = notified_.find(id);
    const auto* base = state_.find(id);
    const auto before = told != notified_.end() ? std::optional(told->second)
                        : base != nullptr       ? std::optional(base->state)
                                                : std::nullopt;
    if (before == record.state) continue;
    notified_.insert_or_assign(id, record.state);
    outcome_.notices.emplace_back(notice::TaskMoved{record, before});
  }
}

void Draft::notify(Notice notice) {
  notify_moves();
  outcome_.notices.push_back(std::move(notice));
}

void Draft::settle_templates() {
  std::map<std::string, std::ptrdiff_t> more;
  for (const auto& [id, record] : changed_) {
    const auto& key = record.template_key;
    if (key.empty() || removed_.contains(id) || state_.find(id) != nullptr) continue;
    ++more[key];
  }
  for (const auto& id : removed_)
    if (const auto* record = state_.find(id); record != nullptr && !record->template_key.empty())
      --more[record->template_key];
  for (const auto& [key, change] : more) {
    const auto found = state_.template_uses.find(key);
    const auto before = found == state_.template_uses.end() ? 0 : static_cast<std::ptrdiff_t>(found->second);
    if (before == 0 && change > 0) outcome_.templates[key] = added_templates_.at(key);
    if (before > 0 && before + change == 0 && !state_.unread_templates.contains(key))
      outcome_.templates[key] = std::nullopt;
  }
}

void Draft::settle_allocations() {
  for (auto& [id, record] : changed_) {
    const auto* before = state_.find(id);
    keep_time(before, record, now_);
    if (before == nullptr) continue;
    const auto over = attempts_over_.find(id);
    const auto how = over == attempts_over_.end() ? std::nullopt : std::optional(over->second);
    if (auto ended = ended_allocation(*before, record, how, now_))
      outcome_.allocations.push_back(std::move(*ended));
  }
}

Outcome Draft::finish() && {
  settle_allocations();
  notify_moves();
  settle_templates();
  for (auto& [id, record] : changed_)
    if (is_final(record.state) && !record.steady_finished_at) record.steady_finished_at = steady();
  for (auto& [id, record] : changed_) outcome_.changed.push_back(std::move(record));
  each_table([](const char*, auto& changes, auto& overlay) { changes = std::move(overlay).take(); },
             static_cast<Tables<Changes>&>(outcome_), static_cast<Tables<Overlay>&>(*this));
  return std::move(outcome_);
}

std::optional<TimePoint> started_by_wall(const Draft& draft, const TaskRecord& record) {
  const auto start = steady_start(record);
  return start ? std::optional(*start + (draft.now() - draft.steady())) : std::nullopt;
}

}  // namespace drover::control
