#include "container/volume_source.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <optional>

#include "base/files.h"

namespace drover::container {
namespace {

constexpr const char* kMountInfo = "/proc/thread-self/mountinfo";
constexpr const char* kWayOut =
    "only a privileged task of a Docker Engine has them, where the daemon was started with "
    "--allow-privileged";

struct MountLine {
  std::uint64_t id = 0;
  std::string place;
  std::string type;
};

/// "\040" is a space: what would end a field is written in octal.
std::string unescaped(std::string_view text) {
  std::string plain;
  while (!text.empty()) {
    int character = 0;
    const auto* const begin = text.data() + 1;
    const bool escape = text.size() >= 4 && text[0] == '\\' &&
                        std::from_chars(begin, begin + 3, character, 8).ptr == begin + 3;
    plain += escape ? static_cast<char>(character) : text[0];
    text.remove_prefix(escape ? 4 : 1);
  }
  return plain;
}

/// The field after so many spaces.
std::string_view field(std::string_view line, int number) {
  for (; number > 0; --number) line.remove_prefix(std::min(line.find(' '), line.size() - 1) + 1);
  return line.substr(0, line.find(' '));
}

std::optional<MountLine> read_mount(std::string_view line) {
  const auto separator = line.find(" - ");
  if (separator == std::string_view::npos) return std::nullopt;
  MountLine mount;
  const auto id = field(line, 0);
  std::from_chars(id.data(), id.data() + id.size(), mount.id);
  mount.place = unescaped(field(line, 4));
  mount.type = unescaped(field(line.substr(separator + 3), 0));
  return mount;
}

std::vector<MountLine> read_mounts(std::string_view mountinfo) {
  std::vector<MountLine> mounts;
  while (!mountinfo.empty()) {
    const auto line = mountinfo.substr(0, mountinfo.find('\n'));
    mountinfo.remove_prefix(std::min(line.size() + 1, mountinfo.size()));
    if (auto mount = read_mount(line)) mounts.push_back(std::move(*mount));
  }
  return mounts;
}

Failure refused(const VolumePlan& volume, std::string_view why) {
  return fail(ErrorKind::kPermissionDenied,
              fmt::format("Volume '{}' cannot be mounted: {}", volume.host_path, why), kWayOut);
}

}  // namespace

bool is_kernel_file_system(std::string_view type) {
  static constexpr std::string_view kTypes[] = {
      "apparmorfs", "binder",  "binfmt_misc", "bpf",        "cgroup",     "cgroup2",    "configfs",
      "cpuset",     "debugfs", "devpts",      "devtmpfs",   "efivarfs",   "functionfs", "fusectl",
      "gadgetfs",   "mqueue",  "nfsd",        "nsfs",       "oprofilefs", "pidfs",      "proc",
      "pstore",     "resctrl", "rpc_pipefs",  "s390_hypfs", "securityfs", "selinuxfs",  "smackfs",
      "spufs",      "sysfs",   "tracefs",     "usbfs",      "xenfs"};
  return std::ranges::binary_search(kTypes, type);
}

std::vector<KernelMount> kernel_mounts_in(std::string_view mountinfo, const std::string& folder) {
  std::vector<KernelMount> found;
  for (auto& mount : read_mounts(mountinfo))
    if (is_kernel_file_system(mount.type) && is_within(mount.place, folder))
      found.push_back({std::move(mount.type), std::move(mount.place)});
  return found;
}

Result<std::vector<KernelMount>> kernel_mounts_in(const std::string& folder) {
  DROVER_TRY(const auto mountinfo, read_file(kMountInfo));
  return kernel_mounts_in(mountinfo, folder);
}

Status check_source(const VolumePlan& volume, int fd) {
  struct statx info{};
  std::array<char, 4097> buffer{};
  const auto size = ::readlink(descriptor_path(fd).c_str(), buffer.data(), buffer.size() - 1);
  if (size < 0 || ::statx(fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &info) != 0)
    return fail_errno(fmt::format("Failed to find out what volume '{}' is", volume.host_path), errno);
  DROVER_TRY(const auto mountinfo, read_file(kMountInfo));
  const auto mounts = read_mounts(mountinfo);
  const auto own = std::ranges::find(mounts, info.stx_mnt_id, &MountLine::id);
  if (own == mounts.end() || (info.stx_mask & STATX_MNT_ID) == 0)
    return refused(volume, "nothing tells the file system that it lies in");
  if (is_kernel_file_system(own->type))
    return refused(volume,
                   fmt::format("it lies in the kernel's file system {} at '{}'", own->type, own->place));
  const std::string real(buffer.data(), static_cast<std::size_t>(size));
  const auto below = kernel_mounts_in(mountinfo, real);
  if (below.empty()) return {};
  return refused(volume, fmt::format("the kernel's file system {} is mounted at '{}'", below.front().type,
                                     below.front().place));
}

}  // namespace drover::container
