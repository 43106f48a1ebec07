#include "sim/limits.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <mutex>
#include <thread>

namespace drover::sim {
namespace {

using Limits = std::array<LiveLimit, kLiveLimits>;
using Clock = std::chrono::steady_clock;

constexpr auto kPatience = std::chrono::milliseconds(200);
constexpr auto kPause = std::chrono::milliseconds(1);

std::size_t limits_at(std::size_t gpu) {
  return offsetof(LiveState, limits) + gpu * sizeof(Limits);
}

/// The word last that says whose it is, so that who takes memory meanwhile sees no half of a limit; and while
/// a limit changes, there always is one.
bool write_limit(int fd, std::size_t offset, const LiveLimit& limit) {
  const auto write = [&](std::size_t at, const void* from, std::size_t size) {
    return ::pwrite(fd, from, size, static_cast<off_t>(at)) == static_cast<ssize_t>(size);
  };
  const bool numbers = limit.group == 0 || write(offset + offsetof(LiveLimit, soft), &limit.soft,
                                                 sizeof limit - offsetof(LiveLimit, soft));
  return numbers && write(offset, &limit.group, sizeof limit.group);
}

/// Of the open file, so that it is no lock of this process on the slots.
bool lock_limits(int fd, short type) {
  struct flock lock{};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = static_cast<off_t>(kLimitsLock);
  lock.l_len = 1;
  const auto deadline = Clock::now() + kPatience;
  while (::fcntl(fd, F_OFD_SETLK, &lock) != 0) {
    if (Clock::now() > deadline) return false;
    std::this_thread::sleep_for(kPause);
  }
  return true;
}

/// Where a group's limit is, or may be; kLiveLimits when there is no room.
std::size_t place_for(const Limits& limits, Group group) {
  const auto place_of = [&](Group whose) {
    return static_cast<std::size_t>(std::ranges::find(limits, whose, &LiveLimit::group) - limits.begin());
  };
  const auto own = place_of(group);
  return own != kLiveLimits ? own : place_of(0);
}

/// Under the lock.
Status write_limit_of(int fd, std::size_t gpu, const LiveLimit& limit) {
  Limits limits{};
  if (!read_live(fd, limits_at(gpu), limits)) return fail(ErrorKind::kUnavailable, "the live file is cut");
  const bool none = limit.soft == 0 && limit.hard == kNoMemoryLimit;
  const auto place = place_for(limits, limit.group);
  if (place == kLiveLimits)
    return none ? Status() : fail(ErrorKind::kExhausted, "too many groups have limits");
  if (write_limit(fd, limits_at(gpu) + place * sizeof limit, none ? LiveLimit{} : limit)) return {};
  return fail(ErrorKind::kUnavailable, "the live file cannot be written");
}

}  // namespace

std::uint64_t LimitFile::used(int fd, std::size_t gpu, Group group) const {
  std::array<Groups, kLiveProcesses> groups{};
  std::array<std::uint64_t, kLiveProcesses> held{};
  const auto held_at = offsetof(LiveState, gpus) + gpu * sizeof(LiveGpu) + offsetof(LiveGpu, held);
  if (!read_live(fd, offsetof(LiveState, groups), groups) || !read_live(fd, held_at, held)) return 0;
  std::uint64_t used = 0;
  for (const auto& [slot, pid] : live_slots(fd)) {
    const auto inside = std::ranges::find(groups[slot], group) != groups[slot].end();
    if (inside && __builtin_add_overflow(used, held[slot], &used)) return UINT64_MAX;
  }
  return used;
}

MemoryLimit LimitFile::of(std::size_t gpu, Group group) const {
  MemoryLimit found;
  const int fd = live_state(file_, false);
  Limits limits{};
  if (fd < 0 || gpu >= kLiveGpus || group == 0 || !read_live(fd, limits_at(gpu), limits)) return found;
  for (const auto& limit : limits)
    if (limit.group == group) {
      found.soft = limit.soft;
      found.hard = limit.hard;
    }
  found.used = used(fd, gpu, group);
  return found;
}

std::optional<MemoryLimit> LimitFile::view(std::size_t gpu, const Groups& own) const {
  if (own.front() == 0) return std::nullopt;
  const auto limit = of(gpu, own.front());
  return limit.hard == kNoMemoryLimit ? std::nullopt : std::optional(limit);
}

Status LimitFile::set(std::size_t gpu, Group group, std::uint64_t soft, std::uint64_t hard) const {
  static std::mutex mutex;
  const std::scoped_lock alone(mutex);
  if (live_state(file_, true) < 0) DROVER_CHECK_OK(create_live_file(file_));
  const int fd = live_state(file_, true);
  if (fd < 0 || gpu >= kLiveGpus)
    return fail(ErrorKind::kPermissionDenied, "'" + file_.string() + "' cannot be written");
  if (!lock_limits(fd, F_WRLCK))
    return fail(ErrorKind::kTimeout, "somebody keeps the limits of '" + file_.string() + "' locked");
  auto written = write_limit_of(fd, gpu, {group, soft, hard});
  lock_limits(fd, F_UNLCK);
  return written;
}

}  // namespace drover::sim
