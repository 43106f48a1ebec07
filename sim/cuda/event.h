#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>

#include "sim/cuda/context.h"

namespace drover::sim::cuda {

/// One moment in the work of a stream, as often as it is recorded. Thread safe.
struct Event {
  Event(std::shared_ptr<Context> owner, unsigned int event_flags)
      : context(std::move(owner)), flags(event_flags) {}

  const std::weak_ptr<Context> context;
  const unsigned int flags;

  std::mutex mutex;  ///< of what follows
  std::condition_variable changed;
  std::uint64_t recorded = 0;               ///< how often
  std::uint64_t reached = 0;                ///< the last recording that its stream has come to
  std::uint64_t at_ns = 0;                  ///< when it did
  std::shared_ptr<Capture> capture;         ///< of the stream that recorded it last, if that is captured
  std::atomic<WorkQueue::Ticket> last = 0;  ///< of the work that is a recording

  /// A recording begins; its number.
  std::uint64_t begin() {
    const std::scoped_lock lock(mutex);
    capture.reset();
    return ++recorded;
  }
  void reach(std::uint64_t recording, std::uint64_t ns) {
    const std::scoped_lock lock(mutex);
    reached = std::max(reached, recording);
    at_ns = ns;
    changed.notify_all();
  }
  /// Whether its stream has come to the latest recording, and says so too.
  bool done() {
    const auto owner = context.lock();
    const std::scoped_lock lock(mutex);
    return reached == recorded && (!owner || owner->queue.done(last));
  }
  /// Waits for a recording.
  void wait(std::uint64_t recording) {
    const auto ticket = last.load();  // it may be recorded again meanwhile
    {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return reached >= recording; });
    }
    if (const auto owner = context.lock()) owner->queue.wait(ticket);
  }
};

}  // namespace drover::sim::cuda
