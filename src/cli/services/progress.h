#pragma once

// Whether apps that a deployment is to bring up come further, or fail and fail. A value; pure.

#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>

namespace drover::cli {

/// So many instances of an app have failed, and for so long, with no more of them up than before: then its
/// deployment is not waited for any longer.
inline constexpr std::size_t kManyFailures = 3;
inline constexpr std::chrono::minutes kLongFailing{2};

class Progress {
 public:
  using Clock = std::chrono::steady_clock;

  struct Failing {
    std::string app;
    std::size_t failures = 0;
    std::chrono::milliseconds time{0};  ///< since the first of them
  };

  /// One look at an app: how many instances of its newest configuration are up, and which of them failed
  /// last; "" for none.
  void see(const std::string& app, int up, const std::string& failed, Clock::time_point now);
  /// An app that keeps failing.
  std::optional<Failing> failing(Clock::time_point now) const;

 private:
  struct Seen {
    int most_up = 0;
    std::set<std::string> failed;  ///< since more were up than ever before
    std::string last;              ///< that failed, whenever that was
    Clock::time_point since{};     ///< of the first in `failed`
  };

  std::map<std::string, Seen> apps_;
};

}  // namespace drover::cli
