// Nobody is starved by a stream of others. DROVER_PROPERTY_STEPS says how many plans each property makes
// (default 4,000).

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <map>
#include <set>

#include "placement/testing/properties.h"
#include "placement/testing/workplace.h"

namespace drover::placement {
namespace {

using namespace std::chrono_literals;
using namespace placement::testing;

constexpr int kMostStreams = 5;  ///< of one list of choices

/// One job waits in front of a stream of others, of the same user and priority.
class Stream {
 public:
  Stream(std::uint64_t seed, bool with_time_limits)
      : dice_(seed), work_(dice_.in(1, 3), 4), with_time_limits_(with_time_limits) {
    for (int i = 0; i < 12; ++i) submit(with_time_limits_);
    step();
    work_.waiting.clear();
    for (const auto& [id, running] : work_.running) before_.insert(id);
    first_ = gang("first", dice_.in(1, 3), gpus(dice_.in(1, 4)));
  }

  /// Whether it has to wait, but could run alone.
  bool is_of_interest() { return possible(work_.cluster, {}, first_) && !fits(work_.cluster); }

  /// When enough of those who run have come to their time limits.
  TimePoint earliest() const {
    std::set<TimePoint> ends;
    for (const auto& [id, running] : work_.running) ends.insert(*end_of(running));
    for (const auto end : ends) {
      auto later = work_.cluster;
      for (const auto& [id, running] : work_.running)
        if (*end_of(running) <= end)
          for (std::size_t rank = 0; rank < running.decisions.size(); ++rank)
            later.release(allocation_id(running.job, rank));
      if (fits(later)) return end;
    }
    return TimePoint::max();
  }

  /// Jobs come, jobs end: when all have ended that ran before it, it runs. Where some of the others have time
  /// limits, it may be told one of these instead.
  void check_without_time_limits(bool mixed) {
    work_.submit(first_);
    step();
    auto deadline = TimePoint::max();
    while (!work_.runs("first")) {
      if (dice_.one_in(2)) submit(mixed && dice_.one_in(2));
      if (dice_.one_in(2)) end_at_random();
      if (mixed && dice_.one_in(3)) go_to_next_end(deadline);
      if (!mixed && dice_.one_in(3)) work_.now += dice_.in(1, 200) * 1min;
      step();
      if (before_.empty() && deadline == TimePoint::max()) deadline = work_.now + (mixed ? 60min : 0min);
      RC_ASSERT(work_.now < deadline || work_.runs("first"));
    }
  }

  /// Jobs come, and run as long as they may: it starts when it could have started alone.
  void check_with_time_limits() {
    const auto deadline = earliest();
    work_.submit(first_);
    step();
    while (!work_.runs("first")) {
      RC_ASSERT(work_.now <= deadline);
      if (dice_.one_in(2)) submit(!dice_.one_in(4));
      if (dice_.one_in(2)) go_to_next_end(deadline);
      step();
    }
    RC_ASSERT(work_.now <= deadline);
  }

  /// Jobs come of which something is expected, rightly or wrongly, and which end within two hours: so does
  /// the wait.
  void check_with_expectations() {
    const auto deadline = work_.now + 6h;
    work_.submit(first_);
    step();
    while (!work_.runs("first")) {
      RC_ASSERT(work_.now <= deadline);
      if (dice_.one_in(2)) submit_expected();
      if (dice_.one_in(2)) work_.now += dice_.in(1, 10) * 1min;
      std::vector<std::string> over;
      for (const auto& [id, running] : work_.running)
        if (running.started_at + really_[id] <= work_.now) over.push_back(id);
      for (const auto& id : over) end(id);
      step();
    }
  }

  int plans() const { return plans_; }

 private:
  void step() {
    ++plans_;
    work_.step();
  }
  bool fits(Cluster& cluster) const {
    return std::holds_alternative<std::vector<Decision>>(place(cluster, first_.gang));
  }
  static std::optional<TimePoint> end_of(const RunningJob& running) {
    if (!running.job.time_limit) return std::nullopt;
    return running.started_at + *running.job.time_limit;
  }

  void submit_expected() {
    auto job = small();
    if (!dice_.one_in(6)) job.expected = dice_.in(1, 60) * 1min;
    really_[job.id] = dice_.in(1, 120) * 1min;
    work_.submit(job);
  }

  void submit(bool with_time_limit) {
    auto job = small();
    if (with_time_limit) job.time_limit = dice_.in(1, 60) * 1min;
    work_.submit(job);
  }

  Job small() {
    auto request = dice_.one_in(4) ? cpu_only(dice_.in(1, 20) * 1000) : gpus(dice_.in(1, 2));
    if (request.gpu_count() == 1 && dice_.one_in(3)) request.share.milli = 500;
    return gang("s" + std::to_string(number_++), dice_.one_in(5) ? 2 : 1, request);
  }

  void end(const std::string& id) {
    before_.erase(id);
    work_.end(id);
  }

  void end_at_random() {
    if (work_.running.empty()) return;
    auto at = work_.running.begin();
    std::advance(at, dice_.in(0, static_cast<int>(work_.running.size()) - 1));
    end(std::string(at->first));
  }

  void go_to_next_end(TimePoint latest) {
    std::optional<TimePoint> next;
    if (latest != TimePoint::max()) next = latest;
    for (const auto& [id, running] : work_.running)
      if (const auto end = end_of(running)) next = std::min(*end, next.value_or(*end));
    if (!next) return;
    work_.now = std::max(work_.now, *next);
    std::vector<std::string> over;
    for (const auto& [id, running] : work_.running)
      if (end_of(running) && *end_of(running) <= work_.now) over.push_back(id);
    for (const auto& id : over) end(id);
  }

  Dice dice_;
  Workplace work_;
  bool with_time_limits_;
  std::set<std::string> before_;
  std::map<std::string, std::chrono::milliseconds> really_;  ///< how long jobs run; others end at once
  Job first_;
  int number_ = 0;
  int plans_ = 0;
};

TEST(StarvationProperty, AStreamOfSmallJobsDelaysNobodyBeyondTheEndOfThoseBefore) {
  check_until(property_steps(kUsualSteps), kMostStreams, [](const std::vector<std::uint64_t>& choices) {
    int plans = 0;
    for (const auto choice : choices)
      if (Stream stream(choice, false); stream.is_of_interest()) {
        stream.check_without_time_limits(choice % 2 == 0);
        plans += stream.plans();
      }
    return plans;
  });
}

TEST(StarvationProperty, BackfillDelaysNobodyWhoCouldHaveStarted) {
  check_until(property_steps(kUsualSteps), kMostStreams, [](const std::vector<std::uint64_t>& choices) {
    int plans = 0;
    for (const auto choice : choices)
      if (Stream stream(choice, true); stream.is_of_interest()) {
        stream.check_with_time_limits();
        plans += stream.plans();
      }
    return plans;
  });
}

TEST(StarvationProperty, WhatIsExpectedWronglyDelaysNobodyForEver) {
  check_until(property_steps(kUsualSteps), kMostStreams, [](const std::vector<std::uint64_t>& choices) {
    int plans = 0;
    for (const auto choice : choices)
      if (Stream stream(choice, false); stream.is_of_interest()) {
        stream.check_with_expectations();
        plans += stream.plans();
      }
    return plans;
  });
}

}  // namespace
}  // namespace drover::placement
