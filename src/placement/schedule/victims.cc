#include "placement/schedule/victims.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace drover::placement::schedule {
namespace {

bool contains(const std::vector<int>& line, int queue) {
  return std::ranges::find(line, queue) != line.end();
}

}  // namespace

void Victims::set_runners(std::deque<Runner>& runners) {
  runners_ = &runners;
  order_.resize(runners.size());
  ordered_ = false;
}

/// When it is asked for: most plans look for no victims.
const std::vector<std::size_t>& Victims::order() {
  if (std::exchange(ordered_, true)) return order_;
  std::iota(order_.begin(), order_.end(), std::size_t{0});
  std::ranges::sort(order_, {}, [&](std::size_t i) {
    const auto& running = *(*runners_)[i].running;
    return std::tuple(running.job.priority, -running.started_at.time_since_epoch(), i);
  });
  return order_;
}

void Victims::pass(const Waiter& waiter) {
  if (!fair_share_.any_guarantee()) return;
  bool covered = false;
  for (const auto queue : fair_share_.line(waiter.queue)) {
    covered = covered || fair_share_.covers(queue, waiter.shape->total);
    if (!covered) passed_.insert(queue);
  }
}

bool Victims::reclaims(const Waiter& waiter, const Runner& runner) const {
  const auto& theirs = fair_share_.line(runner.queue);
  bool covered = false;
  for (const auto queue : fair_share_.line(waiter.queue)) {
    if (contains(theirs, queue)) return false;
    covered = covered || fair_share_.covers(queue, waiter.shape->total);
    // The last queue below the first that both stand in decides whose turn it is between them.
    const auto& line = fair_share_.line(queue);
    const bool divides = line.size() == 1 || contains(theirs, line[1]);
    if (divides) return covered && !passed_.contains(queue);
  }
  return false;
}

bool Victims::is_protected(const Waiter& waiter, const Runner& runner,
                           const std::map<int, Load>& less) const {
  const auto& ours = fair_share_.line(waiter.queue);
  for (const auto queue : fair_share_.line(runner.queue)) {
    if (contains(ours, queue)) return false;
    if (!fair_share_.has_guarantee(queue)) continue;
    const auto found = less.find(queue);
    if (fair_share_.within_guarantee(queue, runner.shape->total,
                                     found == less.end() ? Load{} : found->second))
      return true;
  }
  return false;
}

std::vector<Runner*> Victims::candidates(const Waiter& waiter) {
  std::vector<Runner*> result;
  for (const auto i : order()) {
    auto& runner = (*runners_)[i];
    if (!fair_share_.any_guarantee() && runner.running->job.priority >= waiter.job->priority)
      break;  // as all after it
    if (runner.ending || runner.new_now) continue;
    if (runner.running->job.priority >= waiter.job->priority && !reclaims(waiter, runner)) continue;
    if (!is_protected(waiter, runner, {})) result.push_back(&runner);
  }
  return result;
}

bool Victims::allowed(const Waiter& waiter, std::vector<Runner*> victims) const {
  if (!fair_share_.any_guarantee()) return true;
  std::ranges::sort(victims, {}, [](const Runner* victim) {
    return std::tie(victim->shape->total, victim->running->job.id);
  });
  std::map<int, Load> less;
  for (const auto* victim : victims) {
    if (is_protected(waiter, *victim, less)) return false;
    for (const auto queue : fair_share_.line(victim->queue)) {
      if (contains(fair_share_.line(waiter.queue), queue)) break;
      if (fair_share_.has_guarantee(queue)) less[queue] += victim->shape->total;
    }
  }
  return true;
}

bool Victims::enough(const Waiter& waiter, const std::vector<Runner*>& victims) const {
  if (waiter.accounts.empty()) return true;
  std::map<int, Load> gone;
  for (const auto* victim : victims)
    for (const auto account : victim->accounts) gone[account] += victim->shape->demand.own;
  return limits_.fits_soon(waiter.accounts, waiter.shape->demand, gone);
}

}  // namespace drover::placement::schedule
