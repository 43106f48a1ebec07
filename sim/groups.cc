#include "sim/groups.h"

#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>

#include <fstream>
#include <iterator>
#include <vector>

namespace drover::sim {
namespace {

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t end = 0; end != std::string_view::npos; text.remove_prefix(end + 1)) {
    end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) break;
  }
  return parts;
}

std::string whole_file(const char* file) {
  std::ifstream stream(file);
  return {std::istreambuf_iterator<char>(stream), {}};
}

Group inode_of(const std::string& folder) {
  struct stat info{};
  return ::stat(folder.c_str(), &info) == 0 && S_ISDIR(info.st_mode) ? info.st_ino : 0;
}

/// From `folder` on upwards, not beyond `top`.
Groups upwards(std::string folder, const std::string& top) {
  Groups groups{};
  for (auto& group : groups) {
    group = inode_of(folder);
    if (folder.size() <= top.size() || folder.find('/') == std::string::npos) break;
    folder.erase(folder.rfind('/'));
  }
  return groups;
}

/// The part of `path` below `root`; none when it is not below.
std::optional<std::string> below(std::string_view path, std::string_view root) {
  if (root == "/") return path == "/" ? "" : std::string(path);
  if (!path.starts_with(root)) return std::nullopt;
  path.remove_prefix(root.size());
  return path.empty() || path.front() == '/' ? std::optional(std::string(path)) : std::nullopt;
}

}  // namespace

std::optional<GroupFolder> own_group_folder(std::string_view mountinfo, std::string_view groups) {
  constexpr std::string_view kUnified = "0::";
  std::optional<std::string_view> own;
  for (const auto line : split(groups, '\n'))
    if (line.starts_with(kUnified)) own = line.substr(kUnified.size());
  if (!own) return std::nullopt;
  for (const auto line : split(mountinfo, '\n')) {
    constexpr std::size_t kRoot = 3;
    const auto separator = line.find(" - ");
    if (separator == std::string_view::npos || !line.substr(separator + 3).starts_with("cgroup2 ")) continue;
    const auto fields = split(line.substr(0, separator), ' ');
    if (fields.size() <= kRoot + 1) continue;
    if (auto path = below(*own, fields[kRoot])) return GroupFolder{std::string(fields[kRoot + 1]), *path};
  }
  return std::nullopt;
}

Groups own_groups(const std::optional<std::filesystem::path>& stand_in) {
  if (stand_in) return upwards(stand_in->string(), "/");
  const auto folder = own_group_folder(whole_file("/proc/self/mountinfo"), whole_file("/proc/self/cgroup"));
  return folder ? upwards(folder->mount + folder->path, folder->mount) : Groups{};
}

Group group_at(const std::filesystem::path& folder, bool any_folder) {
  struct statfs system{};
  if (!folder.is_absolute() || ::statfs(folder.c_str(), &system) != 0) return 0;
  return any_folder || system.f_type == CGROUP2_SUPER_MAGIC ? inode_of(folder.string()) : 0;
}

}  // namespace drover::sim
