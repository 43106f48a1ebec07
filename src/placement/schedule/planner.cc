#include "placement/schedule/planner.h"

#include <algorithm>
#include <utility>

#include "placement/schedule/reservation.h"

namespace drover::placement::schedule {
namespace {

/// By id, so that their order in the question does not matter.
std::vector<const RunningJob*> sorted(std::vector<const RunningJob*> running) {
  const auto id = [](const RunningJob* each) -> const std::string& { return each->job.id; };
  if (!std::ranges::is_sorted(running, {}, id)) std::ranges::sort(running, {}, id);
  return running;
}

std::vector<const RunningJob*> all_of(const std::vector<RunningJob>& running) {
  std::vector<const RunningJob*> result;
  result.reserve(running.size());
  for (const auto& each : running) result.push_back(&each);
  return result;
}

std::vector<Runner*> chosen(const std::vector<Runner*>& candidates, const Subset& positions) {
  std::vector<Runner*> result;
  for (const auto position : positions) result.push_back(candidates[position]);
  return result;
}

std::vector<const RunningJob*> ending_of(const std::vector<RunningJob>& running) {
  auto result = all_of(running);
  std::erase_if(result, [](const auto* each) { return !each->ending; });
  return sorted(std::move(result));
}

}  // namespace

Planner::Planner(Cluster& cluster, const Rules& rules, const std::vector<Job>& waiting,
                 const std::vector<RunningJob>& running, TimePoint now,
                 const std::vector<DisruptionBudget>& budgets, const OnStart& on_start)
    : waiting_(waiting),
      now_(now),
      on_start_(on_start),
      shapes_(cluster),
      fair_share_(rules, total_of(cluster)),
      limits_(rules),
      ending_(ending_of(running)),
      room_(cluster, ending_),
      victims_(fair_share_, limits_),
      disruptions_(budgets) {
  for (const auto* each : sorted(all_of(running))) {
    auto& runner = runners_.emplace_back();
    runner = {each, &shapes_.of(each->job.gang), fair_share_.queue_of(each->job),
              limits_.accounts_of(each->job), each->ending};
    limits_.start(runner.accounts, runner.shape->demand, Span::kLasting);
    if (!each->ending) fair_share_.charge(runner.queue, each->job.user, runner.shape->total);
  }
  // What is ending still counts now, and not soon.
  for (const auto& runner : runners_)
    if (runner.ending) {
      limits_.end(runner.accounts, runner.shape->demand);
      close_groups(*runner.shape);
    }
  victims_.set_runners(runners_);
}

Plan Planner::run() {
  std::vector<Waiter> waiters;
  waiters.reserve(waiting_.size());
  for (const auto& job : waiting_) {
    auto& shape = shapes_.of(job.gang);
    const auto queue = fair_share_.queue_of(job);
    fair_share_.add(queue, job, shape.total, waiters.size());
    waiters.push_back({&job, &shape, queue, limits_.accounts_of(job)});
  }
  plan_.order.reserve(waiters.size());
  verdicts_.reserve(waiters.size());
  while (const auto next = fair_share_.next()) {
    plan_.order.push_back(waiters[*next].job->id);
    consider(waiters[*next]);
  }
  plan_.waiting = explain(verdicts_, room_, limits_, reserved_at_, now_);
  return std::move(plan_);
}

void Planner::consider(const Waiter& waiter) {
  if (start_now(waiter) || wait_for_ending(waiter) || preempt(waiter)) return;
  victims_.pass(waiter);
  if (const auto excess = limits_.excess(waiter.accounts, waiter.shape->demand, Span::kLasting)) {
    verdicts_.push_back({waiter.job, waiter.shape, Cause::kLimit, *excess});
    return;
  }
  verdicts_.push_back({waiter.job, waiter.shape, Cause::kRoom});
  if (!reserved_ && waiter.shape->can_reserve) reserve(waiter);
}

bool Planner::start_now(const Waiter& waiter) {
  for (const auto& [group, unused] : waiter.shape->demand.groups)
    if (closed_groups_.contains(group)) return false;
  if (waiter.shape->fits_lasting && start_as(waiter, Span::kLasting)) return true;
  return ends_in_time(*waiter.job) && waiter.shape->fits_briefly && start_as(waiter, Span::kBrief);
}

bool Planner::start_as(const Waiter& waiter, Span span) {
  if (limits_.excess(waiter.accounts, waiter.shape->demand, span)) return false;
  const bool lasting = span == Span::kLasting;
  auto placed = try_place(lasting ? room_.lasting() : room_.brief(), waiter.job->gang);
  if (!placed || !room_.start(*waiter.job, *placed, span)) {
    (lasting ? waiter.shape->fits_lasting : waiter.shape->fits_briefly) = false;
    return false;
  }
  limits_.start(waiter.accounts, waiter.shape->demand, span);
  add_runner(waiter, *placed, true);
  plan_.starts.push_back({waiter.job->id, std::move(*placed)});
  if (on_start_) on_start_(plan_.starts.back());
  return true;
}

/// Room is made for somebody already: whoever it is enough for waits for it, and keeps it.
bool Planner::wait_for_ending(const Waiter& waiter) {
  if (!room_.changes_soon() || waiter.shape->failed_soon == ended_) return false;
  if (!limits_.fits_soon(waiter.accounts, waiter.shape->demand, {})) return false;
  auto placed = try_place(room_.soon(), waiter.job->gang);
  if (!placed) {
    waiter.shape->failed_soon = ended_;
    return false;
  }
  hold(waiter, *placed, {});
  verdicts_.push_back({waiter.job, waiter.shape, Cause::kEnding});
  return true;
}

bool Planner::preempt(const Waiter& waiter) {
  const bool within_limits = limits_.fits_soon(waiter.accounts, waiter.shape->demand, {});
  const Search search{waiter.shape, waiter.job->priority, fair_share_.any_guarantee() ? waiter.queue : 0,
                      within_limits ? Accounts{} : waiter.accounts};
  if (searches_ >= kMostVictimSearches || in_vain_.contains(search)) return false;
  const auto candidates = victims_.candidates(waiter);
  if (candidates.empty() || !victims_.enough(waiter, candidates)) {
    in_vain_.insert(search);
    return false;
  }
  const auto found = find_victims(waiter, within_limits, candidates);
  if (!found) {
    in_vain_.insert(search);
    return false;
  }
  end(waiter, chosen(candidates, found->gone), found->decisions);
  return true;
}

/// The fewest, first of all of those who take the budgets beyond their bounds.
std::optional<Eviction> Planner::find_victims(const Waiter& waiter, bool within_limits,
                                              const std::vector<Runner*>& candidates) {
  std::vector<const RunningJob*> running;
  for (const auto* candidate : candidates) running.push_back(candidate->running);
  const auto beyond = [&](const std::vector<Runner*>& victims) { return disruptions_.beyond(victims); };
  const auto search = [&](int most_beyond) {
    ++searches_;
    return fewest_evictions(room_.soon(),
                            {waiter.job->gang, running,
                             [&](const Subset& subset) {
                               const auto victims = chosen(candidates, subset);
                               return beyond(victims) <= most_beyond && victims_.allowed(waiter, victims);
                             },
                             [&](const Subset& subset) {
                               return within_limits || victims_.enough(waiter, chosen(candidates, subset));
                             }});
  };
  auto found = search(0);
  const int all = beyond(candidates);
  if (found || all == 0) return found;
  found = search(all);
  while (found && searches_ < kMostVictimSearches) {
    const int now = beyond(chosen(candidates, found->gone));
    auto fewer = now > 1 ? search(now - 1) : std::nullopt;
    if (!fewer) break;
    found = std::move(fewer);
  }
  return found;
}

void Planner::end(const Waiter& waiter, const std::vector<Runner*>& victims,
                  const std::vector<Decision>& decisions) {
  Preemption preemption{waiter.job->id, {}};
  std::vector<const RunningJob*> running;
  for (auto* victim : victims) {
    victim->ending = true;
    running.push_back(victim->running);
    preemption.victims.push_back(victim->running->job.id);
    disruptions_.end(*victim->running);
    limits_.end(victim->accounts, victim->shape->demand);
    fair_share_.charge(victim->queue, victim->running->job.user, negative(victim->shape->total));
    close_groups(*victim->shape);
  }
  ended_ += static_cast<int>(victims.size());
  hold(waiter, decisions, running);
  verdicts_.push_back({waiter.job, waiter.shape, Cause::kPreempting, {}, victims.size()});
  plan_.preemptions.push_back(std::move(preemption));
}

void Planner::hold(const Waiter& waiter, const std::vector<Decision>& decisions,
                   const std::vector<const RunningJob*>& victims) {
  room_.hold(*waiter.job, decisions, victims);
  limits_.hold(waiter.accounts, waiter.shape->demand);
  add_runner(waiter, decisions, false);
}

void Planner::add_runner(const Waiter& waiter, const std::vector<Decision>& decisions, bool starts) {
  auto& job = new_.emplace_back(RunningJob{*waiter.job, decisions, now_});
  if (!starts) {
    job.job.time_limit.reset();  // nobody knows when it starts
    job.job.expected.reset();
    close_groups(*waiter.shape);
  }
  runners_.push_back({&job, waiter.shape, waiter.queue, waiter.accounts, false, true});
  fair_share_.charge(waiter.queue, waiter.job->user, waiter.shape->total);
}

void Planner::close_groups(const Shape& shape) {
  for (const auto& [group, unused] : shape.demand.groups) closed_groups_.insert(group);
}

bool Planner::could_fit_once(const Gang& gang) {
  if (!empty_) {
    empty_ = std::make_unique<Cluster>(room_.soon());
    for (const auto& runner : runners_) give_back(*empty_, runner.running->job);
  }
  return try_place(*empty_, gang).has_value();
}

/// Who runs, as a job sees them that waits for them.
std::optional<Reservation> Planner::find_reservation(const Waiter& waiter) {
  // The first may as well be looked for at once: hardly ever is there a second.
  if (std::exchange(tried_reservation_, true) && !could_fit_once(waiter.job->gang)) return std::nullopt;
  const auto preemptable = victims_.candidates(waiter);
  const std::set<const Runner*> may_go(preemptable.begin(), preemptable.end());
  const auto stands_before = [&](const Job& job) {
    return std::pair(waiter.job->priority, job.sequence) < std::pair(job.priority, waiter.job->sequence);
  };
  std::vector<const RunningJob*> before;
  std::vector<const RunningJob*> behind;
  std::vector<const RunningJob*> going;
  for (const auto& runner : runners_) {
    if (runner.ending) continue;
    auto& list = may_go.contains(&runner) ? going : stands_before(runner.running->job) ? before : behind;
    list.push_back(runner.running);
  }
  auto world = std::make_unique<Cluster>(room_.soon());
  return earliest_start(*world, {waiter.job->gang, before, behind, going, now_});
}

void Planner::reserve(const Waiter& waiter) {
  const auto found = find_reservation(waiter);
  if (!found) {
    waiter.shape->can_reserve = false;
    return;
  }
  reserved_ = true;
  reserved_at_ = found->at;
  verdicts_.back().reserved = true;
  verdicts_.back().estimated = found->estimated;
  room_.reserve(*waiter.job, found->decisions, found->gone);
  limits_.reserve(waiter.accounts, waiter.shape->demand);
  fair_share_.charge(waiter.queue, waiter.job->user, waiter.shape->total);
  close_groups(*waiter.shape);
  const std::set<const RunningJob*> gone(found->gone.begin(), found->gone.end());
  for (const auto& runner : runners_)
    if (gone.contains(runner.running)) {
      limits_.end_later(runner.accounts, runner.shape->demand);
      close_groups(*runner.shape);
    }
}

bool Planner::ends_in_time(const Job& job) const {
  const auto length = length_of(job);
  return reserved_at_ && length && *length <= *reserved_at_ - now_;
}

}  // namespace drover::placement::schedule
