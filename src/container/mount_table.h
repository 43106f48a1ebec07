#pragma once

// The mounts of a process, to tell whether two paths show the same files: a folder that is mounted in a
// second place has another path there. Pure.

#include <string>
#include <string_view>
#include <vector>

namespace drover::container {

struct MountEntry {
  std::string device;  ///< "major:minor" of its file system
  std::string root;    ///< which folder of that is shown
  std::string place;   ///< where
};

/// From /proc/PID/mountinfo (proc_pid_mountinfo(5)), in its order; lines that are none are left out.
std::vector<MountEntry> parse_mount_table(std::string_view text);

/// Whether below `path` something can be reached that lies in `place`, or `path` itself lies in it, under
/// whatever name. Both are real paths.
bool shows(const std::vector<MountEntry>& mounts, const std::string& path, const std::string& place);

}  // namespace drover::container
