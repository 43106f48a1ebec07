#include "sim/live_process.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

#include <algorithm>
#include <atomic>

namespace drover::sim {
namespace {

/// For how long others that are near the limit at the same moment are waited for, in case that they were
/// stopped.
constexpr std::uint64_t kPatienceNs = 200'000'000;
/// No honest state has turns beyond: one of each process.
constexpr std::uint64_t kLongestQueueNs = kLiveProcesses * kTurnNs;

std::atomic_ref<std::uint64_t> shared_word(std::uint64_t& word) {
  return std::atomic_ref<std::uint64_t>(word);
}

/// No answer when another has it. A lock that this process has already is not seen, so slots are looked at
/// before.
bool lock_byte(int descriptor, std::size_t byte, short type) {
  struct flock lock{};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = static_cast<off_t>(byte);
  lock.l_len = 1;
  return ::fcntl(descriptor, F_SETLK, &lock) == 0;
}

void pause_shortly() {
  const struct timespec moment{0, 20'000};
  ::nanosleep(&moment, nullptr);
}

/// Two threads of one process would be given the same lock.
std::mutex clearing;

std::vector<bool> owned_slots(int descriptor) {
  std::vector<bool> owned(kLiveProcesses);
  for (const auto& [slot, pid] : live_slots(descriptor)) owned[slot] = true;
  return owned;
}

LiveState* map(int descriptor) {
  const int flags = descriptor < 0 ? MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE : MAP_SHARED;
  void* const at = ::mmap(nullptr, sizeof(LiveState), PROT_READ | PROT_WRITE, flags, descriptor, 0);
  return at == MAP_FAILED ? nullptr : static_cast<LiveState*>(at);
}

/// A descriptor of a file that is large enough, or -1.
int usable(const std::filesystem::path& file) {
  int descriptor = live_descriptor(file, true);
  if (descriptor < 0 && create_live_file(file)) descriptor = live_descriptor(file, true);
  struct stat info{};
  const bool whole = descriptor >= 0 && ::fstat(descriptor, &info) == 0 &&
                     static_cast<std::size_t>(info.st_size) >= sizeof(LiveState);
  return whole ? descriptor : -1;
}

/// Others may write what they are in at any moment.
bool counts_in(Groups& groups, Group group) {
  return std::ranges::any_of(groups, [&](auto& each) { return shared_word(each).load() == group; });
}

void add_up_to(std::uint64_t& total, std::uint64_t bytes) {
  if (__builtin_add_overflow(total, bytes, &total)) total = UINT64_MAX;
}

}  // namespace

std::unique_ptr<LiveProcess> LiveProcess::open(const std::filesystem::path& file, std::size_t gpus,
                                               const Groups& groups) {
  const std::scoped_lock lock(clearing);
  gpus = std::min(gpus, kLiveGpus);
  const int descriptor = usable(file);
  auto* state = descriptor < 0 ? nullptr : map(descriptor);
  if (state != nullptr && state->header.magic == kLiveMagic && state->header.version == kLiveVersion) {
    const auto owned = owned_slots(descriptor);
    for (std::size_t slot = 0; slot < kLiveProcesses; ++slot) {
      if (owned[slot] || !lock_byte(descriptor, clearing_lock(slot), F_WRLCK)) continue;
      std::unique_ptr<LiveProcess> process(new LiveProcess(state, gpus, descriptor, slot, groups));
      for (std::size_t gpu = 0; gpu < gpus; ++gpu) process->clear(gpu, slot);
      for (std::size_t i = 0; i < groups.size(); ++i) shared_word(state->groups[slot][i]).store(groups[i]);
      if (lock_byte(descriptor, slot, F_WRLCK)) return process;
      return nullptr;  // somebody locks what is not his
    }
    ::munmap(state, sizeof(LiveState));
    return nullptr;
  }
  if (state != nullptr) ::munmap(state, sizeof(LiveState));
  state = map(-1);
  return state == nullptr ? nullptr : std::unique_ptr<LiveProcess>(new LiveProcess(state, gpus, -1, 0, {}));
}

LiveProcess::LiveProcess(LiveState* state, std::size_t gpus, int descriptor, std::size_t slot,
                         const Groups& groups)
    : state_(state), gpus_(gpus), descriptor_(descriptor), slot_(slot), groups_(groups) {}

LiveProcess::~LiveProcess() {
  for (std::size_t gpu = 0; gpu < gpus_; ++gpu) clear(gpu, slot_);
  if (shared()) {
    lock_byte(descriptor_, slot_, F_UNLCK);
    lock_byte(descriptor_, clearing_lock(slot_), F_UNLCK);
  }
  ::munmap(state_, sizeof(LiveState));
}

void LiveProcess::clear(std::size_t gpu, std::size_t slot) {
  auto& words = state_->gpus[gpu];
  shared_word(words.held[slot]).store(0);
  shared_word(words.wanted[slot]).store(0);
  for (auto& bucket : words.busy[slot]) shared_word(bucket).store(0);
}

LiveProcess::Sum LiveProcess::sum(std::size_t gpu, Group group) const {
  Sum sum;
  auto& words = state_->gpus[gpu];
  for (std::size_t slot = 0; slot < kLiveProcesses; ++slot) {
    // In this order: who moves bytes from wanted to held is counted twice for a moment, and never not at all.
    const auto wanted = shared_word(words.wanted[slot]).load();
    const auto held = shared_word(words.held[slot]).load();
    if ((wanted | held) == 0 || (group != 0 && !counts_in(state_->groups[slot], group))) continue;
    add_up_to(sum.held, held);
    add_up_to(sum.with_wanted, held);
    add_up_to(sum.with_wanted, wanted);
    if (wanted != 0 && slot != slot_) sum.others_wait = true;
  }
  return sum;
}

void LiveProcess::reap(std::size_t gpu) {
  if (!shared()) return;
  const std::scoped_lock lock(clearing);
  const auto owned = owned_slots(descriptor_);
  auto& words = state_->gpus[gpu];
  for (std::size_t slot = 0; slot < kLiveProcesses; ++slot) {
    const auto left = shared_word(words.held[slot]).load() | shared_word(words.wanted[slot]).load();
    if (owned[slot] || left == 0 || !lock_byte(descriptor_, clearing_lock(slot), F_WRLCK)) continue;
    clear(gpu, slot);
    lock_byte(descriptor_, clearing_lock(slot), F_UNLCK);
  }
}

bool LiveProcess::reserve(std::size_t gpu, std::uint64_t bytes, std::uint64_t room) {
  if (gpu >= gpus_ || bytes > room) return false;
  const std::scoped_lock lock(mutex_);
  if (try_reserve(gpu, bytes, room) == Tried::kTaken) return true;
  // Once more without those that died, which hold nothing; and one at a time, so that of several that are
  // near the limit each decides when the others have stepped back.
  reap(gpu);
  const auto deadline = monotonic_ns() + kPatienceNs;
  const auto turnstile = turnstile_lock(gpu);
  while (shared() && !lock_byte(descriptor_, turnstile, F_WRLCK) && monotonic_ns() < deadline)
    pause_shortly();
  auto tried = try_reserve(gpu, bytes, room);
  for (; tried == Tried::kOthersWait && monotonic_ns() < deadline; tried = try_reserve(gpu, bytes, room)) {
    pause_shortly();
    reap(gpu);
  }
  if (shared()) lock_byte(descriptor_, turnstile, F_UNLCK);
  return tried == Tried::kTaken;
}

LiveProcess::Tried LiveProcess::try_reserve(std::size_t gpu, std::uint64_t bytes, std::uint64_t room) {
  const auto wanted = shared_word(state_->gpus[gpu].wanted[slot_]);
  wanted.store(bytes);
  const auto judge = [&](const Sum& sum, std::uint64_t most) {
    if (sum.with_wanted <= most) return Tried::kTaken;
    return sum.others_wait && bytes <= most && sum.held <= most - bytes ? Tried::kOthersWait : Tried::kNoRoom;
  };
  auto tried = judge(sum(gpu), room);
  if (const auto own = limit(gpu)) tried = std::max(tried, judge(sum(gpu, own->group), own->hard));
  if (tried == Tried::kTaken) shared_word(state_->gpus[gpu].held[slot_]).fetch_add(bytes);
  wanted.store(0);
  return tried;
}

std::optional<LiveLimit> LiveProcess::limit(std::size_t gpu) const {
  std::optional<LiveLimit> nearest;
  auto depth = groups_.size();
  if (groups_.front() == 0) return nearest;
  for (auto& entry : state_->limits[gpu]) {
    const auto group = shared_word(entry.group).load();
    const auto place = static_cast<std::size_t>(std::ranges::find(groups_, group) - groups_.begin());
    if (group == 0 || place >= depth) continue;
    depth = place;
    nearest = {group, shared_word(entry.soft).load(), shared_word(entry.hard).load()};
  }
  return nearest;
}

std::optional<LiveProcess::GroupLimit> LiveProcess::own_limit(std::size_t gpu) const {
  const auto nearest = limit(gpu);
  if (!nearest || nearest->group != groups_.front()) return std::nullopt;
  return GroupLimit{nearest->hard, sum(gpu, nearest->group).held};
}

void LiveProcess::release(std::size_t gpu, std::uint64_t bytes) {
  shared_word(state_->gpus[gpu].held[slot_]).fetch_sub(bytes);
}

SlotOwners LiveProcess::slots() const {
  return shared() ? live_slots(descriptor_) : SlotOwners();
}

std::uint64_t LiveProcess::held(std::size_t gpu) const {
  return shared_word(state_->gpus[gpu].held[slot_]).load();
}

std::uint64_t LiveProcess::held_by_all(std::size_t gpu) {
  const std::scoped_lock lock(mutex_);
  reap(gpu);
  return sum(gpu).held;
}

Turn LiveProcess::take_turn(std::size_t gpu, std::uint64_t ready_ns, std::uint64_t wanted_ns) {
  auto until = shared_word(state_->gpus[gpu].busy_until_ns);
  const auto longest = monotonic_ns() + kLongestQueueNs;
  auto seen = until.load();
  while (true) {
    const auto start = seen > longest ? ready_ns : std::max(seen, ready_ns);
    const Turn turn{start, start + std::min(wanted_ns, kTurnNs)};
    if (until.compare_exchange_weak(seen, turn.end_ns)) return turn;
  }
}

void LiveProcess::add_busy(std::size_t gpu, Turn turn) {
  const std::scoped_lock lock(mutex_);
  auto& buckets = state_->gpus[gpu].busy[slot_];
  while (turn.start_ns < turn.end_ns) {
    const auto number = turn.start_ns / kBusyBucketNs;
    const auto part_end = std::min(turn.end_ns, (number + 1) * kBusyBucketNs);
    auto bucket = shared_word(buckets[number % kBusyBuckets]);
    const auto before = bucket.load();
    const auto busy = (before >> 32) == number ? before & kBusyNsMask : 0;
    bucket.store(number << 32 | (busy + part_end - turn.start_ns));
    turn.start_ns = part_end;
  }
}

}  // namespace drover::sim
