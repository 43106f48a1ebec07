#pragma once

// How Mesos counts and refuses. Pure; thread safe.

#include <string>
#include <utility>

#include "base/result.h"
#include "base/units.h"

namespace drover::api::mesos {

/// Memory and disk are in MiB, with decimals.
inline constexpr double kMiB = 1 << 20;

/// Times are seconds since 1970, with decimals.
inline double seconds_of(TimePoint at) {
  return static_cast<double>(at.time_since_epoch().count()) / 1000;
}

inline Failure invalid(std::string message) {
  return fail(ErrorKind::kInvalid, std::move(message));
}

}  // namespace drover::api::mesos
