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

/// The word last that says whose it is, and first when it is nobody's any more: who takes memory meanwhile
/// sees no half of a limit.
bool write_limit(int fd, std::size_t offset, const LiveLimit& limit) {
  const auto write = [&](std::size_t at, const void* from, std::size_t size) {
    return ::pwrite(fd, from, size, static_cast<off_t>(at)) == static_cast<ssize_t>(size);
  };
  const std::uint64_t nobody = 0;
  return write(offset, &nobody, sizeof nobody) &&
         write(offset + sizeof nobody, &limit.soft, sizeof limit - sizeof nobody) &&
         write(offset, &limit.group, sizeof limit.group);
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

/// Where a group's limit is, or may be.
LiveLimit* place_for(Limits& limits, Group group) {
  LiveLimit* free = nullptr;
  for (auto& limit : limits) {
    if (limit.group == group) return &limit;
    if (free == nullptr && limit.group == 0) free = &limit;
  }
  return free;
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
  Limits limits{};
  auto* const place = read_live(fd, limits_at(gpu), limits) ? place_for(limits, group) : nullptr;
  const bool none = soft == 0 && hard == kNoMemoryLimit;
  const auto offset = limits_at(gpu) + static_cast<std::size_t>(place - limits.data()) * sizeof(LiveLimit);
  const bool written =
      place != nullptr && write_limit(fd, offset, none ? LiveLimit{} : LiveLimit{group, soft, hard});
  lock_limits(fd, F_UNLCK);
  if (place == nullptr) return fail(ErrorKind::kExhausted, "too many groups have limits");
  return written ? Status() : fail(ErrorKind::kUnavailable, "'" + file_.string() + "' cannot be written");
}

}  // namespace drover::sim
