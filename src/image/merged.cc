#include "image/merged.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <map>
#include <ranges>

#include "base/fd.h"
#include "base/files.h"
#include "image/layer_tree.h"
#include "image/text.h"

namespace drover::image {
namespace {

constexpr std::size_t kMostNames = 4096;

/// Folders of several layers that show as one, topmost first.
using MergedFolder = std::vector<UniqueFd>;

bool hides_what_is_below(int folder) {
  std::array<char, 2> value{};
  return ::fgetxattr(folder, "trusted.overlay.opaque", value.data(), value.size()) == 1 && value[0] == 'y';
}

UniqueFd open_folder_at(int parent, const std::string& name) {
  return UniqueFd(::openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

MergedFolder enter(const MergedFolder& folder, const std::string& name) {
  MergedFolder inside;
  for (const auto& layer : folder) {
    struct stat info{};
    if (::fstatat(layer.get(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (!S_ISDIR(info.st_mode)) break;  // a whiteout, a file or a link: nothing below it shows
    auto opened = open_folder_at(layer.get(), name);
    if (!opened.valid()) break;
    const bool opaque = hides_what_is_below(opened.get());
    inside.push_back(std::move(opened));
    if (opaque) break;
  }
  return inside;
}

MergedEntry entry_of(const std::string& name, const struct stat& info) {
  if (S_ISDIR(info.st_mode)) return {name, MergedEntry::Kind::kFolder, 0};
  if (S_ISREG(info.st_mode))
    return {name, MergedEntry::Kind::kFile, static_cast<std::uint64_t>(info.st_size)};
  return {name, MergedEntry::Kind::kOther, 0};
}

/// Adds the names of one layer that no layer above it has. A whiteout counts as having it.
Status add_names(int folder, const std::string& path, const std::function<bool(std::string_view)>& wanted,
                 std::map<std::string, struct stat>& seen) {
  DROVER_TRY(const auto here, Directory::open(descriptor_path(folder)));
  DROVER_TRY(const auto names, here.list());
  for (const auto& name : names) {
    struct stat info{};
    if (!wanted(name) || ::fstatat(folder, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) continue;
    seen.try_emplace(name, info);
    if (seen.size() > kMostNames)
      return fail(ErrorKind::kExhausted, fmt::format("'{}' of the image holds more than {} files of a driver",
                                                     printable(path), kMostNames));
  }
  return {};
}

}  // namespace

Result<std::vector<MergedEntry>> list_merged(const std::vector<std::string>& layers, const std::string& path,
                                             const std::function<bool(std::string_view)>& wanted) {
  MergedFolder folder;
  for (const auto& layer : std::views::reverse(layers)) {
    UniqueFd root(::open(layer.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!root.valid()) return fail_errno(fmt::format("Failed to open layer '{}'", layer), errno);
    folder.push_back(std::move(root));
  }
  for (const auto& part : std::views::split(path, '/'))
    if (const std::string name(part.begin(), part.end()); !name.empty()) {
      if (name == "." || name == "..") return std::vector<MergedEntry>{};
      folder = enter(folder, name);
    }
  std::map<std::string, struct stat> seen;
  for (const auto& layer : folder) DROVER_CHECK_OK(add_names(layer.get(), path, wanted, seen));
  std::vector<MergedEntry> entries;
  for (const auto& [name, info] : seen)
    if (!is_whiteout(info)) entries.push_back(entry_of(name, info));
  return entries;
}

}  // namespace drover::image
