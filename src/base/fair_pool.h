#pragma once

// Threads for work that may block, shared fairly between those who ask for it. Each of them, say a user, is a
// key with a queue of its own; the keys take turns, and only so much of one key runs at once. So whoever asks
// for much, or for what hangs, waits for himself and nobody else. Thread safe.

#include <sys/types.h>

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

namespace drover {

class FairPool {
 public:
  using Key = uid_t;
  using Work = std::function<void()>;  ///< must not throw

  struct Limits {
    std::size_t threads = 8;     ///< in all; each is started when it is needed
    std::size_t at_once = 2;     ///< of one key
    std::size_t waiting = 1024;  ///< of one key
  };

  explicit FairPool(Limits limits) : limits_(limits) {}
  /// As stop().
  ~FairPool();
  FairPool(const FairPool&) = delete;
  FairPool& operator=(const FairPool&) = delete;

  /// Runs `work` on one of the threads, in the order of the key. False, and nothing is done, when too much of
  /// this key waits already, or when the machine has no thread for it.
  [[nodiscard]] bool post(Key key, Work work);
  /// Takes no more work, waits for what is under way, and drops what still waits. By one thread, once nobody
  /// else asks for anything but post().
  void stop();
  /// How much of the key waits or runs.
  std::size_t load(Key key) const;
  struct Totals {
    std::size_t running = 0;
    std::size_t waiting = 0;
  };
  /// Of all keys.
  Totals totals() const;

 private:
  struct Share {
    std::deque<Work> waiting;
    std::size_t running = 0;
    bool in_turn = false;  ///< is in turns_
  };

  void run();
  /// Lines the key up for its next turn if it may have one. With the mutex held.
  void line_up(Key key, Share& share);
  /// One more, which is idle at first. False: the machine has none. With the mutex held.
  bool start_thread();

  const Limits limits_;
  mutable std::mutex mutex_;
  std::condition_variable ready_;
  std::map<Key, Share> shares_;  ///< of keys that have work waiting or running
  std::deque<Key> turns_;
  std::size_t idle_ = 0;  ///< threads that wait for a turn, or will as soon as they begin
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace drover
