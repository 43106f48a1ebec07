#include "control/preview.h"

#include <algorithm>

#include "control/planning.h"
#include "control/submission.h"

namespace drover::control {

Result<Preview> preview(const State& state, const std::vector<workload::Task>& tasks, TimePoint now) {
  Draft draft(state, now);
  DROVER_CHECK_OK(submit(draft, tasks));
  auto plan = plan_of(draft);
  const auto& job = job_id(tasks.front());
  Preview preview;
  for (auto& start : plan.starts) {
    if (start.job == job) preview.decisions = std::move(start.decisions);
    std::erase(plan.order, start.job);
  }
  for (const auto& preemption : plan.preemptions)
    for (const auto& victim : preemption.victims)
      if (preemption.job == job)
        for (const auto* member : members_of_job(victim, draft.finder()))
          preview.victims.push_back(member->task.id);
  if (const auto place = std::find(plan.order.begin(), plan.order.end(), job); place != plan.order.end())
    preview.place = static_cast<int>(place - plan.order.begin()) + 1;
  if (const auto reasons = plan.waiting.find(job); reasons != plan.waiting.end())
    preview.reasons = std::move(reasons->second);
  return preview;
}

Result<bool> preview_of_handing_over(const State& state, const std::vector<workload::Task>& tasks,
                                     TimePoint now) {
  Draft draft(state, now);
  DROVER_CHECK_OK(submit(draft, tasks));
  return std::ranges::none_of(tasks, [&](const auto& task) { return is_held(*draft.find(task.id)); });
}

namespace {

/// So often it is planned at most, and so many waiting jobs are looked at in all, for what nobody can be
/// certain of: people who wait ask for it again and again.
constexpr int kMostSteps = 200;
constexpr std::size_t kMostLooks = 10'000;

/// The queue as it goes on by itself.
class Outlook {
 public:
  Outlook(const Draft& draft, TimePoint now)
      : cluster_(draft.cluster()),
        rules_(draft.rules()),
        waiting_(draft.waiting().jobs),
        running_(draft.running()),
        now_(now) {
    cluster_.set_learning(false);
    std::ranges::sort(waiting_, {}, &placement::Job::sequence);
  }

  std::optional<TimePoint> start_of(const std::string& job) {
    if (std::ranges::find(waiting_, job, &placement::Job::id) == waiting_.end()) return std::nullopt;
    std::size_t looks = 0;
    for (int step = 0; step < kMostSteps && looks < kMostLooks; ++step) {
      looks += waiting_.size();
      for (auto& start : placement::plan(cluster_, rules_, waiting_, running_, now_).starts) {
        if (start.job == job) return now_;
        begin(std::move(start));
      }
      if (!go_on()) return std::nullopt;
    }
    return std::nullopt;
  }

 private:
  void begin(placement::Start start) {
    const auto found = std::ranges::find(waiting_, start.job, &placement::Job::id);
    for (std::size_t rank = 0; rank < start.decisions.size(); ++rank)
      cluster_.restore(placement::allocation_id(*found, rank), found->gang.members[rank],
                       start.decisions[rank]);
    running_.push_back({std::move(*found), std::move(start.decisions), now_});
    waiting_.erase(found);
  }

  TimePoint end_of(const placement::RunningJob& running) const {
    if (running.ending) return now_;
    const auto length = placement::length_of(running.job);
    return length ? std::max(now_, running.started_at + *length) : TimePoint::max();
  }

  /// To the moment when the next ends; false when none ever does.
  bool go_on() {
    auto next = TimePoint::max();
    for (const auto& running : running_) next = std::min(next, end_of(running));
    if (next == TimePoint::max()) return false;
    std::erase_if(running_, [&](const placement::RunningJob& running) {
      if (end_of(running) > next) return false;
      for (std::size_t rank = 0; rank < running.job.gang.members.size(); ++rank)
        cluster_.release(placement::allocation_id(running.job, rank));
      return true;
    });
    now_ = next;
    return true;
  }

  placement::Cluster cluster_;
  const placement::Rules& rules_;
  std::vector<placement::Job> waiting_;
  std::vector<placement::RunningJob> running_;
  TimePoint now_;
};

}  // namespace

std::optional<TimePoint> expected_start(const State& state, const std::string& job, TimePoint now) {
  const Draft draft(state, now);
  return Outlook(draft, now).start_of(job);
}

}  // namespace drover::control
