#pragma once

// What the processes on a simulated machine do now: how much of each GPU's memory they hold, and how busy
// they keep it. One sparse file of fixed size, which simulated CUDA (sim/live_process.h) writes and simulated
// NVML reads; all zero but for the header is a valid state.
//
// A process owns the slot i of every GPU while it holds a POSIX record lock on the file's byte i. The kernel
// frees that when the process ends, however it does, and with it all that the slot says. No total is stored,
// so nothing can be left over. What a dead owner has left is cleared by who holds the lock on another byte,
// clearing_lock(i), which an owner has too: so nobody is seen with what another has left.
//
// Closing any descriptor of a file gives up the POSIX locks that the process has on it. So who reads or
// writes the file opens it once, by live_descriptor(), and never closes it; only create_live_file() does,
// which is for processes that use neither CUDA nor a reader on it.
//
// Every process that may open the file may write anything into it, or cut it: readers never map it, and
// distrust every number.

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/result.h"
#include "sim/groups.h"
#include "sim/profile.h"

namespace drover::sim {

inline constexpr std::uint32_t kLiveMagic = 0x4456524C;
inline constexpr std::uint32_t kLiveVersion = 2;
inline constexpr std::size_t kLiveProcesses = 256;
inline constexpr std::size_t kLiveGpus = 64;     ///< by position in the profile
inline constexpr std::size_t kLiveLimits = 128;  ///< groups with a limit, of each GPU
inline constexpr std::size_t kBusyBuckets = 16;
inline constexpr std::uint64_t kBusyBucketNs = 100'000'000;  ///< of CLOCK_MONOTONIC
inline constexpr std::uint64_t kBusyNsMask = (std::uint64_t{1} << 32) - 1;

/// The bytes that are locked: one of each slot, one of each GPU, another one of each slot, and one of the
/// limits.
constexpr std::size_t turnstile_lock(std::size_t gpu) {
  return kLiveProcesses + gpu;
}
constexpr std::size_t clearing_lock(std::size_t slot) {
  return kLiveProcesses + kLiveGpus + slot;
}
inline constexpr std::size_t kLimitsLock = 2 * kLiveProcesses + kLiveGpus;
inline constexpr std::uint64_t kNoMemoryLimit = UINT64_MAX;

/// Busy time in the tenths of a second that were last: the tenth's number in the upper half, nanoseconds in
/// the lower; its place is the number modulo the count.
using LiveBusy = std::uint64_t[kBusyBuckets];

struct LiveGpu {
  std::uint64_t busy_until_ns;  ///< CLOCK_MONOTONIC: when the last turn that somebody took ends
  std::uint64_t unused[7];
  std::uint64_t held[kLiveProcesses];    ///< bytes of memory
  std::uint64_t wanted[kLiveProcesses];  ///< bytes that a process is about to hold, if there is room
  LiveBusy busy[kLiveProcesses];
};

struct LiveHeader {
  std::uint32_t magic;
  std::uint32_t version;
  std::uint64_t unused[7];
};

/// What processes of a control group may hold of a GPU, in bytes.
struct LiveLimit {
  Group group;  ///< 0: nobody's
  std::uint64_t soft;
  std::uint64_t hard;
};

struct LiveState {
  LiveHeader header;
  LiveGpu gpus[kLiveGpus];
  Groups groups[kLiveProcesses];  ///< that the processes are in
  LiveLimit limits[kLiveGpus][kLiveLimits];
};

// The layout is a contract between libraries that may be of different builds.
static_assert(std::is_trivial_v<LiveState> && std::is_standard_layout_v<LiveState>);
static_assert(sizeof(LiveHeader) == 64);
static_assert(sizeof(LiveGpu) == 64 + kLiveProcesses * (16 + 8 * kBusyBuckets));
static_assert(offsetof(LiveGpu, held) == 64);
static_assert(offsetof(LiveGpu, wanted) == 64 + 8 * kLiveProcesses);
static_assert(offsetof(LiveGpu, busy) == 64 + 16 * kLiveProcesses);
static_assert(sizeof(LiveLimit) == 24);
static_assert(sizeof(LiveState) == 64 + kLiveGpus * (sizeof(LiveGpu) + kLiveLimits * sizeof(LiveLimit)) +
                                       kLiveProcesses * sizeof(Groups));

/// Makes the file, for everybody to read and write, unless it is there already. Follows no symbolic link in
/// the last part of the path.
Status create_live_file(const std::filesystem::path& file);

/// A descriptor of the file that stays open as long as the process, the same for each call; or -1 when there
/// is no such regular file that may be opened. Thread safe. Only for reading unless `writable`; a caller asks
/// for one of the two only, since each has its own. A file that was replaced is opened anew.
int live_descriptor(const std::filesystem::path& file, bool writable);

/// The same of a file that says that it is a live state; or -1.
int live_state(const std::filesystem::path& file, bool writable);

/// Reads all of `value`, or says that it is not there.
template <typename Value>
bool read_live(int descriptor, std::size_t offset, Value& value) {
  return ::pread(descriptor, &value, sizeof(value), static_cast<off_t>(offset)) ==
         static_cast<ssize_t>(sizeof(value));
}

/// A process that holds memory of a GPU.
struct LiveUse {
  unsigned int pid = 0;     ///< as the reader's namespace counts; 0 where it does not see the process
  std::uint64_t bytes = 0;  ///< never more than the card has
  double busy = 0;          ///< its share of the last second, 0 to 1

  bool operator==(const LiveUse&) const = default;
};

/// One entry per GPU of the profile, in its order; processes in the order of their slots.
using LiveUses = std::vector<std::vector<LiveUse>>;

/// Slots, ascending, and the pids of who owns them.
using SlotOwners = std::vector<std::pair<std::size_t, unsigned int>>;

/// The slots that processes own now. This process's own are among them.
SlotOwners live_slots(int descriptor);

/// Reads one file, which may appear later. While it is missing, short or no such file, nobody does anything.
class LiveReader {
 public:
  /// `profile` must outlive this.
  LiveReader(std::filesystem::path file, const Profile& profile);

  /// As it is now: a system call, and some for each process and GPU. Thread safe.
  LiveUses current() const;

 private:
  LiveUses uses_of(int fd, const SlotOwners& owners) const;

  const std::filesystem::path file_;
  const Profile* profile_;
};

/// The share of the last second, 0 to 1. `now_ns` is of CLOCK_MONOTONIC. Pure.
double busy_share(const LiveBusy& busy, std::uint64_t now_ns);

/// CLOCK_MONOTONIC.
std::uint64_t monotonic_ns();

}  // namespace drover::sim
