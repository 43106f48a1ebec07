#pragma once

// Contexts and streams. A context's work is done in the order in which it was given, whatever its streams:
// that is one of the orders that CUDA allows.

#include <array>
#include <atomic>
#include <memory>

#include "sim/cuda/driver.h"

namespace drover::sim::cuda {

/// What a stream records instead of doing it; see graph.h.
struct Capture;

struct Stream {
  Stream(std::shared_ptr<Context> owner, unsigned int stream_flags, int stream_priority,
         std::uint64_t stream_id)
      : context(std::move(owner)), flags(stream_flags), priority(stream_priority), id(stream_id) {}

  const std::weak_ptr<Context> context;
  const unsigned int flags;
  const int priority;
  const std::uint64_t id;
  std::atomic<WorkQueue::Ticket> last{0};
  std::atomic<bool> capturing{false};
  std::mutex mutex;  ///< of what follows
  std::shared_ptr<Capture> capture;
};

struct Context : std::enable_shared_from_this<Context> {
  Context(Driver& driver_, Device& device_, bool primary_, unsigned int flags_, unsigned int version_);

  /// Null, with the reason in `result`, when the GPU has no room or is gone.
  static std::shared_ptr<Context> make(Driver& driver, Device& device, bool primary, unsigned int flags,
                                       unsigned int version, CUresult& result);
  /// Waits for its work, and gives back all that it holds.
  void destroy();
  /// A primary context is the same one again after it was destroyed, and empty.
  CUresult revive();
  CUresult set_limit(int limit, std::uint64_t value);
  /// Its work has ended: pools give back what they need not keep.
  void synchronize();

  Driver& driver;
  Device& device;
  const bool primary;
  std::atomic<unsigned int> flags;
  const unsigned int version;
  const std::uint64_t id;
  std::atomic<bool> destroyed{false};
  std::atomic<int> cache_config{0};
  WorkQueue queue;
  std::shared_ptr<Stream> default_stream;
  std::mutex mutex;  ///< of what follows
  std::shared_ptr<Heap> heap;
  std::array<std::uint64_t, CU_LIMIT_MAX> limits{};
  std::uint64_t charged = kContextBytes;
};

/// The current contexts of this thread, the last of them on top.
std::vector<std::shared_ptr<Context>>& context_stack();
/// Null when there is none.
Context* current_context();

/// The stream that a handle means, also one of the default ones; null when there is none.
std::shared_ptr<Stream> find_stream(Context& context, CUstream handle);

/// What an entry point with a default stream for each thread means by a handle.
inline CUstream per_thread(CUstream stream) {
  return stream == nullptr ? CU_STREAM_PER_THREAD : stream;
}

}  // namespace drover::sim::cuda
