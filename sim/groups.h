#pragma once

// Control groups of version 2 as the driver tells them apart: by the inode number of their directory, which
// is the same from inside a container as from outside. Thread safe.

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace drover::sim {

using Group = std::uint64_t;  ///< 0: none
inline constexpr std::size_t kGroupDepth = 4;
/// A process's own group, then those around it, as many as it sees; 0 after the last.
using Groups = std::array<Group, kGroupDepth>;

/// A directory of a mounted cgroup v2 tree.
struct GroupFolder {
  std::string mount;
  std::string path;  ///< below the mount: "" or "/a/b"

  bool operator==(const GroupFolder&) const = default;
};

/// Where a process finds its own group, by the texts of its /proc/self/mountinfo and /proc/self/cgroup. None
/// where no cgroup2 is mounted that shows it. Pure.
std::optional<GroupFolder> own_group_folder(std::string_view mountinfo, std::string_view groups);

/// Those of this process. `stand_in` is a folder that stands for its group, where there is no cgroup v2; the
/// folders around it stand for those around.
Groups own_groups(const std::optional<std::filesystem::path>& stand_in);

/// Of a directory: none unless it is one of a cgroup v2 tree, or `any_folder` stands for one.
Group group_at(const std::filesystem::path& folder, bool any_folder);

}  // namespace drover::sim
