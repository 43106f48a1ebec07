#include "share/turn_keeper.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <utility>

#include "guard/layout.h"

namespace drover::share {
namespace {

constexpr Duration kBeat = std::chrono::milliseconds(100);  // well within GUARD_BEAT_NS

UniqueFd duplicate(int fd) {
  return UniqueFd(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
}

std::uint64_t to_ns(Time time) {
  if (time == Time::max()) return GUARD_NOBODY_ELSE;
  if (time == Time::min()) return 0;
  return static_cast<std::uint64_t>(time.time_since_epoch().count());  // of CLOCK_MONOTONIC
}

/// Some process lives that has the slot: what others left behind counts for nothing.
bool is_owned(int account, std::size_t slot) {
  struct flock lock{};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = static_cast<off_t>(slot);
  lock.l_len = 1;
  return ::fcntl(account, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

Duration to_duration(std::uint64_t ns) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 62;
  return Duration(static_cast<std::int64_t>(std::min(ns, kMost)));
}

}  // namespace

bool Turns::Gpu::needs_turns() const {
  return shares.size() > 1 ||
         std::ranges::any_of(shares, [](const TurnShare& share) { return share.strict; });
}

Turns::Turns() : thread_([this] { run(); }) {}

Turns::~Turns() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
  thread_.join();
  let_all(gpus_);
}

Result<Turns::Gpus> Turns::open(const std::vector<Contender>& contenders) {
  Gpus gpus;
  for (const auto& [gpu, name, limits, account, entry, milli, strict] : contenders) {
    auto& its = gpus[gpu];
    const auto who = fmt::format("the turns of '{}' on GPU {}", name, gpu);
    if (milli < 1 || milli > 1000 || entry >= GUARD_GPUS)
      return fail(ErrorKind::kInternal,
                  fmt::format("Failed to set {}: {} thousandths, entry {}", who, milli, entry));
    if (std::ranges::find(its.shares, name, &TurnShare::name) != its.shares.end())
      return fail(ErrorKind::kInternal, fmt::format("Failed to set {}: they are set twice", who));
    Pages pages{.limits = duplicate(limits), .account = duplicate(account), .entry = entry};
    if (!pages.limits.valid() || !pages.account.valid()) return fail_errno("Failed to set " + who, errno);
    its.shares.push_back({name, milli, strict});
    its.pages.push_back(std::move(pages));
  }
  return gpus;
}

Status Turns::set(const std::vector<Contender>& contenders) {
  auto gpus = open(contenders);
  if (!gpus) return tl::unexpected(gpus.error());
  const auto now = std::chrono::steady_clock::now();
  {
    const std::lock_guard lock(mutex_);
    for (auto& [uuid, gpu] : *gpus) {
      if (const auto before = gpus_.find(uuid); before != gpus_.end())
        gpu.turns = std::move(before->second.turns);
      gpu.turns.set(gpu.shares, now);
    }
    let_all(gpus_);
    gpus_ = std::move(*gpus);
    let_all(gpus_);
    changed_since_ = true;
  }
  changed_.notify_all();
  return {};
}

std::vector<Turns::Figures> Turns::figures() const {
  const std::lock_guard lock(mutex_);
  std::vector<Figures> all;
  for (const auto& [uuid, gpu] : gpus_)
    for (auto& figures : gpu.turns.figures()) all.push_back({uuid, std::move(figures)});
  return all;
}

std::optional<Claim> Turns::claim_of(const Pages& pages) {
  Claim claim;
  std::uint64_t busy_ns = 0;
  std::uint32_t used = 0;
  const int fd = pages.account.get();
  if (::pread(fd, &used, sizeof(used), offsetof(guard_account, slots_used)) != sizeof(used)) return {};
  used = std::min<std::uint32_t>(used, GUARD_SLOTS);
  std::array<guard_slot, GUARD_SLOTS> slots;  // only those that are read
  const auto size = used * sizeof(guard_slot);
  if (::pread(fd, slots.data(), size, offsetof(guard_account, slots)) != static_cast<ssize_t>(size))
    return {};
  for (std::size_t i = 0; i < used; ++i) {
    const auto& use = slots[i].uses[pages.entry];
    claim.asked += use.asked;
    busy_ns += use.busy_ns;
    claim.longest = std::max(claim.longest, to_duration(use.longest_ns));
    claim.in_flight = claim.in_flight || (use.in_flight != 0 && is_owned(fd, i));
  }
  claim.busy = to_duration(busy_ns);
  return claim;
}

void Turns::write(Pages& pages, Time until, Time at) {
  const std::array<std::uint64_t, 2> words{to_ns(until), to_ns(at)};
  const bool is_said = words[0] == pages.until_ns && pages.written != Time::min();
  if (is_said && (until == Time::max() || at - pages.written < kBeat)) return;
  pages.until_ns = words[0];
  pages.written = at;
  const auto place = offsetof(guard_limits, turns) + pages.entry * sizeof(guard_turn);
  // Where it fails, the container sees no beat any more, and waits for no turn.
  [[maybe_unused]] const auto written =
      ::pwrite(pages.limits.get(), words.data(), sizeof(words), static_cast<off_t>(place));
}

void Turns::let_all(Gpus& gpus) {
  const auto now = std::chrono::steady_clock::now();
  for (auto& [uuid, gpu] : gpus)
    for (auto& pages : gpu.pages) write(pages, Time::max(), now);
}

Time Turns::step_all() {
  auto next = Time::max();
  for (auto& [uuid, gpu] : gpus_) {
    if (!gpu.needs_turns()) continue;
    const auto now = std::chrono::steady_clock::now();
    if (now >= gpu.next) {
      std::vector<Claim> claims;
      for (auto& pages : gpu.pages) {
        const auto claim = claim_of(pages);
        pages.is_readable = claim.has_value();
        claims.push_back(claim.value_or(Claim{}));
      }
      gpu.turns.step(claims, now);
      for (std::size_t i = 0; i < gpu.pages.size(); ++i)
        write(gpu.pages[i], gpu.pages[i].is_readable ? gpu.turns.admitted_until(i) : Time::min(), now);
      gpu.next = now + gpu.turns.patience();
    }
    next = std::min(next, gpu.next);
  }
  return next;
}

void Turns::run() {
  ::prctl(PR_SET_TIMERSLACK, 1);
  for (std::unique_lock lock(mutex_); !stopped_;) {
    changed_since_ = false;
    const auto next = step_all();
    const auto is_told = [&] { return stopped_ || changed_since_; };
    if (next == Time::max())
      changed_.wait(lock, is_told);
    else
      changed_.wait_until(lock, next, is_told);
  }
}

}  // namespace drover::share
