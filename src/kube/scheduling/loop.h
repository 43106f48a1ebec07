#pragma once

// The scheduler at work: it is told of changes, decides on a thread of its own, and has what was decided
// written by others, many at a time. What fails waits a while and is decided anew. Thread safe.
//
//   SchedulingLoop loop(api, {});
//   loop.change([](scheduler::Scheduler& scheduler) { scheduler.put_node(…); });
//   loop.begin();  // when it knows all that there is

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/fair_pool.h"
#include "kube/client/api.h"
#include "kube/events/event_recorder.h"
#include "kube/scheduler/scheduler.h"
#include "kube/scheduling/condition_writer.h"

namespace drover::kube {

struct SchedulingOptions {
  scheduler::SchedulerOptions scheduler;
  std::size_t writes = 32;  ///< at a time
  std::chrono::milliseconds first_retry{1000};
  std::chrono::milliseconds longest_retry{60'000};
  std::chrono::milliseconds look_again{5000};             ///< when nothing has changed, but time passes
  std::function<void(const std::string& sentence)> warn;  ///< from any thread; may be absent
  /// Asked before each write, from any thread: whether it is still this one that decides. May be absent.
  std::function<bool()> may_write;
};

/// Since it began.
struct SchedulingCounts {
  std::atomic<std::uint64_t> rounds = 0, bound = 0, refused = 0, evicted = 0;
  std::atomic<std::uint64_t> waiting = 0;                ///< now
  std::atomic<std::uint64_t> deciding_microseconds = 0;  ///< in all
  /// When its thread came round last, which it does every few seconds, whether it decides or not.
  std::atomic<std::chrono::steady_clock::time_point> turned{std::chrono::steady_clock::now()};
};

class SchedulingLoop {
 public:
  /// `api` and `counts` outlive it.
  SchedulingLoop(Api& api, SchedulingCounts& counts, SchedulingOptions options);
  SchedulingLoop(const SchedulingLoop&) = delete;
  SchedulingLoop& operator=(const SchedulingLoop&) = delete;
  /// Waits for what is being written.
  ~SchedulingLoop();

  using Change = std::function<void(scheduler::Scheduler&)>;
  /// In the order of the calls, before the next decision. Does not block.
  void change(Change change);
  /// From now on it decides.
  void begin();
  /// What queues hold, as of some seconds ago; nullptr before it has begun.
  std::shared_ptr<const scheduler::Scheduler::Use> use() const;

 private:
  void run(const std::stop_token& stop);
  std::chrono::milliseconds decide();
  void write(const scheduler::Start& start);
  struct Batch;
  void prepare(Batch& batch, scheduler::Binding& binding);
  void prepare_failed(Batch& batch, const scheduler::Binding& binding, const Error& error);
  void bind_all(Batch& batch);
  void bind(const scheduler::Binding& binding);
  void release(const scheduler::Binding& binding);
  void write_volumes(const scheduler::VolumeWrite& what);
  void undo_volumes(const scheduler::VolumeUndo& undo);
  void note_done(const scheduler::PodName& pod);
  void put_back(const scheduler::Binding& binding, const Error& error);
  std::optional<bool> is_bound(const scheduler::PodName& pod);
  bool may_write() const { return !options_.may_write || options_.may_write(); }
  void undo(const scheduler::LeftClaim& left);
  void evict(const scheduler::Eviction& eviction);
  void hold(const std::string& node, bool held);
  void fail(const scheduler::PodName& pod, const Error& error, const std::string& what,
            bool claims_stand = false);
  void tell(const scheduler::Round& round);

  Api& api_;
  SchedulingCounts& counts_;
  const SchedulingOptions options_;
  ConditionWriter conditions_;
  scheduler::Scheduler scheduler_;  ///< of the thread alone
  std::chrono::steady_clock::time_point told_at_{};
  mutable std::mutex mutex_;  ///< of what follows
  std::shared_ptr<const scheduler::Scheduler::Use> use_;
  std::condition_variable_any changed_;
  std::vector<Change> changes_;
  std::unordered_map<std::string, int> failures_;  ///< in a row, by uid
  bool begun_ = false;
  std::stop_source ending_;
  FairPool writers_;
  EventRecorder events_;
  std::jthread thread_;
};

}  // namespace drover::kube
