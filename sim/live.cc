#include "sim/live.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <ctime>
#include <map>
#include <mutex>
#include <string>

#include "base/fd.h"

namespace drover::sim {
namespace {

constexpr std::uint64_t kBucketsOfASecond = 10;
constexpr mode_t kEverybody = 0666;

UniqueFd open_regular(const std::filesystem::path& file, int flags, struct stat& info) {
  UniqueFd fd(::open(file.c_str(), flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, kEverybody));
  if (!fd.valid() || (::fstat(fd.get(), &info) == 0 && S_ISREG(info.st_mode))) return fd;
  errno = EINVAL;
  return {};
}

void add_owners(int fd, std::size_t begin, std::size_t end, SlotOwners& owners) {
  if (begin >= end) return;
  // Asked for as another open file, and not as this process, so that its own locks are seen.
  struct flock lock{};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = static_cast<off_t>(begin);
  lock.l_len = static_cast<off_t>(end - begin);
  if (::fcntl(fd, F_OFD_GETLK, &lock) != 0 || lock.l_type == F_UNLCK) return;
  const auto first = std::clamp(static_cast<std::size_t>(lock.l_start), begin, end);
  const auto last =
      lock.l_len == 0 ? end : std::clamp(first + static_cast<std::size_t>(lock.l_len), first, end);
  add_owners(fd, begin, first, owners);
  // Neighbouring locks of one process are one lock.
  for (auto slot = first; lock.l_pid >= 0 && slot < last; ++slot)
    owners.emplace_back(slot, static_cast<unsigned int>(lock.l_pid));
  add_owners(fd, std::max(last, first + 1), end, owners);
}

}  // namespace

Status create_live_file(const std::filesystem::path& file) {
  const auto what = "Failed to make '" + file.string() + "'";
  struct stat info{};
  if (open_regular(file, O_RDWR, info).valid())
    return static_cast<std::size_t>(info.st_size) >= sizeof(LiveState)
               ? Status()
               : fail(ErrorKind::kConflict, "'" + file.string() + "' is there and is no live state",
                      "remove it");
  if (errno != ENOENT) return fail_errno(what, errno);
  // Seen by nobody before it is whole.
  const auto unfinished = file.string() + "." + std::to_string(::getpid());
  const auto fd = open_regular(unfinished, O_RDWR | O_CREAT | O_EXCL, info);
  if (!fd.valid()) return fail_errno(what, errno);
  const LiveHeader header{kLiveMagic, kLiveVersion, {}};
  const bool made =
      ::fchmod(fd.get(), kEverybody) == 0 && ::ftruncate(fd.get(), sizeof(LiveState)) == 0 &&
      ::pwrite(fd.get(), &header, sizeof(header), 0) == static_cast<ssize_t>(sizeof(header)) &&
      (::renameat2(AT_FDCWD, unfinished.c_str(), AT_FDCWD, file.c_str(), RENAME_NOREPLACE) == 0 ||
       errno == EEXIST);
  const int error = errno;
  ::unlink(unfinished.c_str());
  if (!made) return fail_errno(what, error);
  return {};
}

int live_descriptor(const std::filesystem::path& file, bool writable) {
  static std::mutex mutex;
  static auto& opened = *new std::map<std::pair<std::filesystem::path, bool>, int>;  // outlives every thread
  const std::scoped_lock lock(mutex);
  const auto found = opened.find({file, writable});
  struct stat now{};
  struct stat then{};
  if (found != opened.end() && ::fstat(found->second, &then) == 0 && ::lstat(file.c_str(), &now) == 0 &&
      now.st_ino == then.st_ino && now.st_dev == then.st_dev)
    return found->second;
  auto fd = open_regular(file, writable ? O_RDWR : O_RDONLY, now);
  if (!fd.valid()) return -1;
  return opened[{file, writable}] = fd.release();
}

int live_state(const std::filesystem::path& file, bool writable) {
  const int fd = live_descriptor(file, writable);
  LiveHeader header{};
  const bool ours =
      fd >= 0 && read_live(fd, 0, header) && header.magic == kLiveMagic && header.version == kLiveVersion;
  return ours ? fd : -1;
}

SlotOwners live_slots(int descriptor) {
  SlotOwners owners;
  add_owners(descriptor, 0, kLiveProcesses, owners);
  return owners;
}

LiveReader::LiveReader(std::filesystem::path file, const Profile& profile)
    : file_(std::move(file)), profile_(&profile) {}

LiveUses LiveReader::current() const {
  LiveUses uses(profile_->gpus.size());
  const int fd = live_state(file_, false);
  if (fd < 0) return uses;
  // Who ended meanwhile may have been read beside who took what he had.
  constexpr int kTries = 5;
  auto owners = live_slots(fd);
  for (int tries = 0; tries < kTries; ++tries) {
    uses = uses_of(fd, owners);
    auto now = live_slots(fd);
    if (now == owners) break;
    owners = std::move(now);
  }
  return uses;
}

LiveUses LiveReader::uses_of(int fd, const SlotOwners& owners) const {
  LiveUses uses(profile_->gpus.size());
  const auto now = monotonic_ns();
  for (std::size_t gpu = 0; !owners.empty() && gpu < std::min(uses.size(), kLiveGpus); ++gpu) {
    const auto base = offsetof(LiveState, gpus) + gpu * sizeof(LiveGpu);
    std::array<std::uint64_t, kLiveProcesses> held{};
    if (!read_live(fd, base + offsetof(LiveGpu, held), held)) continue;
    for (const auto& [slot, pid] : owners) {
      LiveBusy busy{};
      if (held[slot] == 0 || !read_live(fd, base + offsetof(LiveGpu, busy) + slot * sizeof(LiveBusy), busy))
        continue;
      uses[gpu].push_back(
          {pid, std::min(held[slot], profile_->gpus[gpu].model.memory_mib << 20), busy_share(busy, now)});
    }
  }
  return uses;
}

double busy_share(const LiveBusy& busy, std::uint64_t now_ns) {
  const auto current = now_ns / kBusyBucketNs;
  std::uint64_t total = 0;
  for (const auto bucket : busy)  // the tenth that has not ended would make the share too low
    if (const auto number = bucket >> 32; number < current && number + kBucketsOfASecond >= current)
      total += std::min(bucket & kBusyNsMask, kBusyBucketNs);
  return std::min(1.0, static_cast<double>(total) / (kBucketsOfASecond * kBusyBucketNs));
}

std::uint64_t monotonic_ns() {
  struct timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

}  // namespace drover::sim
