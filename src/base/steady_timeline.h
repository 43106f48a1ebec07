#pragma once

// A clock for durations that nobody can set: it goes on from the first look in a boot of the machine,
// whatever becomes of the system's clock, also while the machine sleeps and over restarts of the program.
// What it says is about the time of day. After a boot it is set by the system's clock once more.

#include <string>
#include <string_view>

#include "base/moment.h"

namespace drover {

class SteadyTimeline {
 public:
  struct Clocks {
    std::string boot;  ///< id of the boot
    std::chrono::milliseconds since_boot{};
    TimePoint wall{};
  };

  /// Goes on with what text() gave, when it was in this boot; else begins with the system's clock.
  SteadyTimeline(const Clocks& clocks, std::string_view kept);
  /// By this machine's clocks, and with a file by a trusted path. It is written when it was not there or is
  /// of another boot; when that fails, the timeline still goes on as long as the program.
  static SteadyTimeline resume(const std::string& path);

  /// To be kept for the next life of the program.
  std::string text() const;
  TimePoint at(std::chrono::milliseconds since_boot) const { return boot_ + since_boot; }
  TimePoint now() const;

 private:
  std::string id_;
  TimePoint boot_{};  ///< when the machine was booted, on this timeline
};

}  // namespace drover
