#include "base/remove_tree.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "base/fd.h"

namespace drover {
namespace {

constexpr int kOpenLevels = 32;
constexpr int kRemovalTries = 16;
constexpr std::uint64_t kMostMoved = 100'000;  // of kOpenLevels levels each

/// What is being removed. Whoever owns the tree chooses how deep it is, so only some levels are held open:
/// what lies deeper is moved up into the tree's root and has its turn there.
struct Removal {
  int root = -1;
  dev_t device = 0;
  std::stop_token stop;
  std::uint64_t moved = 0;
};

Result<std::vector<std::string>> names_in(int folder) {
  return Directory::open(descriptor_path(folder)).and_then([](const Directory& opened) {
    return opened.list();
  });
}

/// From now on nobody but root can put anything into the folder, whatever descriptors of it he holds: the
/// kernel asks at each creation. The access lists of a folder are masked by the mode.
void take_over(int folder, const struct stat& info) {
  if (::geteuid() != 0) return;
  if (info.st_uid != 0 || info.st_gid != 0) (void)::fchown(folder, 0, 0);
  if ((info.st_mode & 0077) != 0) (void)::fchmod(folder, 0700);
}

Failure still_written(const std::string& shown) {
  return fail(ErrorKind::kConflict,
              fmt::format("Failed to remove '{}': somebody goes on writing into it", shown),
              "end the program that does; 'fuser' may find it");
}

Status move_up(int parent, const std::string& name, const std::string& shown, Removal& removal) {
  if (removal.moved > kMostMoved) return still_written(shown);
  int moved = -1;
  do {  // names that the tree's owner has taken are passed by
    const auto place = fmt::format(".drover-removed-{}", removal.moved++);
    moved = ::renameat2(parent, name.c_str(), removal.root, place.c_str(), RENAME_NOREPLACE);
  } while (moved != 0 && errno == EEXIST);
  if (moved == 0) return {};
  return fail_errno(fmt::format("Failed to remove '{}'", shown), errno);
}

Status remove_below(int parent, const std::string& name, const std::string& shown, int level,
                    Removal& removal) {
  if (::unlinkat(parent, name.c_str(), 0) == 0 || errno == ENOENT) return {};
  if (errno != EISDIR && errno != EPERM && errno != EBUSY)
    return fail_errno(fmt::format("Failed to remove '{}'", shown), errno);
  if (removal.stop.stop_requested())
    return fail(ErrorKind::kConflict, fmt::format("The removal of '{}' was broken off", shown));
  const UniqueFd folder(::openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!folder.valid()) return fail_errno(fmt::format("Failed to remove '{}'", shown), errno);
  struct stat info{};
  ::fstat(folder.get(), &info);
  if (info.st_dev != removal.device)
    return fail(ErrorKind::kConflict, fmt::format("Failed to remove '{}': something is mounted there", shown),
                "unmount it first");
  take_over(folder.get(), info);
  if (level == kOpenLevels) return move_up(parent, name, shown, removal);
  DROVER_TRY(const auto names, names_in(folder.get()));
  for (const auto& child : names)
    DROVER_CHECK_OK(remove_below(folder.get(), child, shown + "/" + child, level + 1, removal));
  if (::unlinkat(parent, name.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT) return {};
  return fail_errno(fmt::format("Failed to remove '{}'", shown), errno);
}

}  // namespace

Status remove_tree(const Directory& parent, const std::string& name, const std::stop_token& stop) {
  const auto shown = parent.path() + "/" + name;
  struct stat info{};
  if (::fstatat(parent.fd(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) {
    if (errno == ENOENT) return {};
    return fail_errno(fmt::format("Failed to remove '{}'", shown), errno);
  }
  const auto place = info.st_dev;
  if (::fstat(parent.fd(), &info) != 0)
    return fail_errno(fmt::format("Failed to look at '{}'", parent.path()), errno);
  const UniqueFd root(::openat(parent.fd(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  Removal removal{root.get(), info.st_dev, stop};
  if (!root.valid() || place != info.st_dev) return remove_below(parent.fd(), name, shown, 0, removal);
  if (::fstat(root.get(), &info) == 0) take_over(root.get(), info);
  for (int tries = 0; tries < kRemovalTries;) {
    const auto moved = removal.moved;
    DROVER_TRY(const auto names, names_in(root.get()));
    if (names.empty()) break;
    for (const auto& child : names)
      DROVER_CHECK_OK(remove_below(root.get(), child, shown + "/" + child, 0, removal));
    if (removal.moved == moved) ++tries;  // else there is less depth than before
  }
  if (::unlinkat(parent.fd(), name.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT) return {};
  if (errno == ENOTEMPTY) return still_written(shown);
  return fail_errno(fmt::format("Failed to remove '{}'", shown), errno);
}

}  // namespace drover
