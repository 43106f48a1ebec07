#pragma once

// How much of the daemon's memory and time the answers to one user take up. What is not sent yet is held in
// memory, and writing a large answer takes a processor: so each user has a share of so many bytes that are on
// their way, and of as many a second. Root has no limit. Thread safe.

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "base/result.h"
#include "base/users.h"

namespace drover::api {

class AnswerShares {
 public:
  using Clock = std::chrono::steady_clock;

  explicit AnswerShares(std::uint64_t share) : share_(share) {}

  /// Who has waited so long for one's turn is refused.
  static constexpr std::chrono::seconds kPatience{10};

  /// How long the user must wait before another answer is made; 0 when he need not. Less than asked for is of
  /// no use while his earlier answers are not read: ask again after it.
  Clock::duration wait(uid_t user, Clock::time_point now);
  /// An answer of so many bytes is on its way, until the handle dies.
  std::shared_ptr<void> begin(uid_t user, std::uint64_t bytes, Clock::time_point now);
  /// Bytes on their way.
  std::uint64_t unsent(uid_t user) const;
  /// After kPatience.
  Error refusal(const User& user) const;

 private:
  struct Share {
    std::uint64_t unsent = 0;
    double recent = 0;  ///< bytes that count against the share of a second, at `at`
    Clock::time_point at{};
  };
  void age(Share& share, Clock::time_point now) const;

  const std::uint64_t share_;
  mutable std::mutex mutex_;
  std::map<uid_t, Share> shares_;
};

}  // namespace drover::api
