#include "replay.h"

#include <algorithm>
#include <queue>
#include <stdexcept>

namespace drover::bench {
namespace {

using placement::Cluster;
using placement::Decision;
using placement::Job;
using placement::RunningJob;
using placement::Start;

double seconds(std::chrono::milliseconds duration) {
  return std::chrono::duration<double>(duration).count();
}

/// Starts in this order what fits; up to the first that does not, when `strict`.
std::vector<Start> start_in_order(const Scene& scene, const std::vector<const Job*>& order, bool strict) {
  std::vector<Start> starts;
  std::vector<const placement::Request*> failed;
  for (const auto* job : order) {
    const auto& request = job->gang.members.front();
    if (std::ranges::any_of(failed, [&](const auto* known) { return *known == request; })) continue;
    auto decision = scene.cluster.try_place(request);
    if (!decision && strict) break;
    if (!decision) {
      failed.push_back(&request);
      continue;
    }
    if (!scene.cluster.allocate(job->id, request, *decision))
      throw std::logic_error("what was placed does not fit");
    starts.push_back({job->id, {std::move(*decision)}});
  }
  for (const auto& start : starts) scene.cluster.release(start.job);
  return starts;
}

std::vector<const Job*> in_order(const std::vector<Job>& jobs) {
  std::vector<const Job*> order;
  for (const auto& job : jobs) order.push_back(&job);
  return order;
}

/// The state of one replay.
class Player {
 public:
  Player(const Cluster& cluster, const std::vector<RecordedJob>& recorded, Known known)
      : cluster_(cluster), recorded_(recorded), known_(known) {
    outcome_.waits.resize(recorded.size());
    outcome_.completions.resize(recorded.size());
  }

  Outcome play(const Discipline& discipline) {
    while (next_ < recorded_.size() || !ends_.empty()) {
      now_ = ends_.empty() ? recorded_[next_].arrival : ends_.top().first;
      if (next_ < recorded_.size()) now_ = std::min(now_, recorded_[next_].arrival);
      end_until_now();
      arrive_until_now();
      if (waiting_.empty()) continue;
      if (known_ == Known::kHistory) expect();
      ++outcome_.decisions;
      for (auto& start : discipline({cluster_, waiting_, running_, recorded_, now_})) begin(std::move(start));
    }
    if (!waiting_.empty()) throw std::logic_error("a job waits that nothing keeps from starting");
    if (started_ != recorded_.size()) throw std::logic_error("a job was lost");
    measure_use();
    return std::move(outcome_);
  }

 private:
  void end_until_now() {
    for (; !ends_.empty() && ends_.top().first <= now_; ends_.pop()) {
      const auto& ended = recorded_[ends_.top().second];
      const auto& id = ended.job.id;
      run_times_.add(kind_of(ended.job), ended.duration);
      cluster_.release(id);
      std::erase_if(running_, [&](const RunningJob& running) { return running.job.id == id; });
    }
  }

  static placement::RunTimes::Kind kind_of(const Job& job) {
    return {.user = "", .name = "", .size = placement::RunTimes::size_of(1, job.gang.members.front())};
  }

  void expect() {
    for (auto& job : waiting_) job.expected = run_times_.expected(kind_of(job));
    for (auto& running : running_) running.job.expected = run_times_.expected(kind_of(running.job));
  }

  void arrive_until_now() {
    for (; next_ < recorded_.size() && recorded_[next_].arrival <= now_; ++next_) {
      waiting_.push_back(recorded_[next_].job);
      if (known_ == Known::kTimeLimits) waiting_.back().time_limit = recorded_[next_].duration;
    }
  }

  void begin(Start start) {
    const auto found = std::ranges::find(waiting_, start.job, &Job::id);
    if (found == waiting_.end()) throw std::logic_error("a job was started that does not wait");
    const auto sequence = found->sequence;
    const auto& recorded = recorded_[sequence];
    if (!cluster_.allocate(start.job, found->gang.members.front(), start.decisions.front()))
      throw std::logic_error("what was started does not fit");
    running_.push_back({*found, std::move(start.decisions), now_});
    waiting_.erase(found);
    ++started_;
    ends_.emplace(now_ + recorded.duration, sequence);
    outcome_.waits[sequence] = seconds(now_ - recorded.arrival);
    outcome_.completions[sequence] = seconds(now_ + recorded.duration - recorded.arrival);
  }

  void measure_use() {
    const auto from = recorded_.front().arrival;
    const auto to = recorded_.back().arrival;
    double held = 0;
    for (std::size_t i = 0; i < recorded_.size(); ++i) {
      const auto& request = recorded_[i].job.gang.members.front();
      const auto begin = seconds(recorded_[i].arrival - from) + outcome_.waits[i];
      const auto end = std::min(begin + seconds(recorded_[i].duration), seconds(to - from));
      held += std::max(0.0, end - begin) * request.gpu_count() * request.share.milli;
    }
    double all = 0;
    for (const auto& name : cluster_.nodes())
      all += 1000.0 * static_cast<double>(cluster_.node(name)->inventory.devices.size());
    const auto room = all * seconds(to - from);
    outcome_.gpu_use = room > 0 ? held / room : 0;
  }

  Cluster cluster_;
  const std::vector<RecordedJob>& recorded_;
  Known known_;
  placement::RunTimes run_times_;
  std::vector<Job> waiting_;
  std::vector<RunningJob> running_;
  using End = std::pair<TimePoint, std::size_t>;
  std::priority_queue<End, std::vector<End>, std::greater<>> ends_;
  std::size_t next_ = 0;
  std::size_t started_ = 0;
  TimePoint now_{};
  Outcome outcome_;
};

}  // namespace

std::vector<Start> first_come_first_served(const Scene& scene) {
  return start_in_order(scene, in_order(scene.waiting), true);
}

std::vector<Start> whoever_fits(const Scene& scene) {
  return start_in_order(scene, in_order(scene.waiting), false);
}

std::vector<Start> shortest_first(const Scene& scene) {
  auto order = in_order(scene.waiting);
  std::ranges::sort(order, {}, [&](const Job* job) {
    return std::pair(scene.recorded[job->sequence].duration, job->sequence);
  });
  return start_in_order(scene, order, false);
}

std::vector<Start> drover_queue(const Scene& scene) {
  return placement::plan(scene.cluster, {}, scene.waiting, scene.running, scene.now).starts;
}

Outcome replay(const Cluster& cluster, const std::vector<RecordedJob>& recorded, const Discipline& discipline,
               Known known) {
  return Player(cluster, recorded, known).play(discipline);
}

}  // namespace drover::bench
