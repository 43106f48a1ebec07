#pragma once

// What every container has of its own, whatever is asked for.

#include <array>

namespace drover::container {

/// Mounted afresh. Nothing of a user or a device covers them.
inline constexpr std::array kOwnPlaces = {"/dev", "/proc", "/sys"};

/// What the runtime mounts in /dev.
inline constexpr std::array kOwnDevicePlaces = {"/dev/pts", "/dev/shm", "/dev/mqueue"};

/// Where the pipes of an MPS daemon are, in a container that has one. On the machine it is an empty folder of
/// root's, since a container without an image has the machine's files.
inline constexpr const char* kMpsInTask = "/run/drover-mps";

}  // namespace drover::container
