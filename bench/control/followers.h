#pragma once

// Many who follow a live stream at once, each over a connection of its own. One thread reads for all of them
// and keeps of each only how many events it has seen.

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "base/fd.h"

namespace drover::bench {

class Followers {
 public:
  /// Asks for `target` on so many connections. With `reads` false nobody ever reads what comes.
  Followers(std::uint16_t port, const std::string& target, int count, bool reads = true);
  ~Followers();
  Followers(const Followers&) = delete;
  Followers& operator=(const Followers&) = delete;

  /// What all of them together have seen.
  std::uint64_t events() const { return events_; }
  /// What the one has seen who has seen least.
  std::uint64_t fewest() const;
  /// Those whose stream has ended.
  int gone() const { return gone_; }

 private:
  struct One {
    UniqueFd socket;
    std::size_t matched = 0;  ///< of what begins an event, at the end of what was read last
    std::atomic<std::uint64_t> events = 0;
  };
  void read_all();
  std::uint64_t count_in(One& one, const char* bytes, std::size_t size) const;

  std::vector<One> followers_;
  UniqueFd poll_;
  std::atomic<std::uint64_t> events_ = 0;
  std::atomic<int> gone_ = 0;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

}  // namespace drover::bench
