#include "container/mount_table.h"

#include <algorithm>
#include <optional>
#include <sstream>

#include "container/volume_plan.h"

namespace drover::container {
namespace {

/// A folder of a file system.
struct Location {
  std::string device;
  std::string path;
};

/// "\040" → " ": how the kernel writes what would look like the end of a field.
std::string unescape_octal(const std::string& field) {
  const auto digit = [&](std::size_t at) {
    return at < field.size() && field[at] >= '0' && field[at] <= '7';
  };
  std::string text;
  for (std::size_t i = 0; i < field.size(); ++i) {
    if (field[i] == '\\' && digit(i + 1) && digit(i + 2) && digit(i + 3)) {
      text += static_cast<char>(std::stoi(field.substr(i + 1, 3), nullptr, 8));
      i += 3;
    } else {
      text += field[i];
    }
  }
  return text;
}

/// The mount that covers the path: the deepest, and of those in one place the last.
std::optional<Location> locate(const std::vector<MountEntry>& mounts, const std::string& path) {
  const MountEntry* covering = nullptr;
  for (const auto& mount : mounts)
    if (is_within(path, mount.place) && (covering == nullptr || mount.place.size() >= covering->place.size()))
      covering = &mount;
  if (covering == nullptr) return std::nullopt;
  const auto below = covering->place == "/" ? path : path.substr(covering->place.size());
  return Location{covering->device, plain_path(covering->root + "/" + below)};
}

bool overlap(const Location& a, const Location& b) {
  return a.device == b.device && (is_within(a.path, b.path) || is_within(b.path, a.path));
}

}  // namespace

std::vector<MountEntry> parse_mount_table(std::string_view text) {
  std::vector<MountEntry> mounts;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    std::string id, parent, device, root, place;
    if (fields >> id >> parent >> device >> root >> place)
      mounts.push_back({device, unescape_octal(root), unescape_octal(place)});
  }
  return mounts;
}

bool shows(const std::vector<MountEntry>& mounts, const std::string& path, const std::string& place) {
  const auto hidden = locate(mounts, place);
  const auto shown = locate(mounts, path);
  if (is_within(path, place) || is_within(place, path)) return true;
  if (!hidden || !shown) return false;
  if (overlap(*shown, *hidden)) return true;
  return std::ranges::any_of(mounts, [&](const MountEntry& mount) {
    return is_within(mount.place, path) && overlap({mount.device, mount.root}, *hidden);
  });
}

}  // namespace drover::container
