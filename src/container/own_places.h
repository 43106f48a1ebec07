#pragma once

// What every container has of its own, whatever is asked for.

#include <array>

namespace drover::container {

/// Mounted afresh. Nothing of a user or a device covers them.
inline constexpr std::array kOwnPlaces = {"/dev", "/proc", "/sys"};

/// What the runtime mounts in /dev.
inline constexpr std::array kOwnDevicePlaces = {"/dev/pts", "/dev/shm", "/dev/mqueue"};

}  // namespace drover::container
