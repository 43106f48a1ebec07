#include "share/pages.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "guard/layout.h"

namespace drover::share {
namespace {

static_assert(kMostLimits == GUARD_GPUS);

constexpr std::uint64_t kMostRefused = 1ULL << 53;
constexpr int kOwnersOfASlot = 4;  ///< that may follow on each other while it is looked at

Result<guard_limits> page_of(const std::vector<Limit>& limits, std::uint64_t generation) {
  if (limits.size() > kMostLimits)
    return fail(ErrorKind::kInvalid, fmt::format("a container can have shares of {} GPUs, and not of {}",
                                                 kMostLimits, limits.size()));
  guard_limits page{};
  page.magic = GUARD_LIMITS_MAGIC;
  page.version = GUARD_LIMITS_VERSION;
  page.generation = generation;
  page.count = static_cast<std::uint32_t>(limits.size());
  for (std::size_t i = 0; i < limits.size(); ++i) {
    auto& entry = page.gpus[i];
    if (limits[i].gpu.empty() || limits[i].gpu.size() >= sizeof entry.uuid)
      return fail(ErrorKind::kInvalid, fmt::format("'{}' is no UUID of a GPU", limits[i].gpu));
    limits[i].gpu.copy(entry.uuid, sizeof entry.uuid - 1);
    entry.bytes = limits[i].bytes;
    page.turns[i].milli = static_cast<std::uint32_t>(limits[i].milli);
    page.turns[i].until_ns = GUARD_NOBODY_ELSE;
  }
  return page;
}

Status write_page(int fd, const void* page, std::size_t size, std::size_t place = 0) {
  const auto written = ::pwrite(fd, page, size, static_cast<off_t>(place));
  if (written == static_cast<ssize_t>(size)) return {};
  return fail_errno("Failed to write a page of a share", written < 0 ? errno : ENOSPC);
}

/// Whatever the umask is.
Result<UniqueFd> make_page(const Directory& folder, const char* name, mode_t mode) {
  DROVER_TRY(auto fd, folder.open_file(name, O_RDWR | O_CREAT | O_EXCL, 0600));
  if (::fchmod(fd.get(), mode) != 0)
    return fail_errno(fmt::format("Failed to set the mode of '{}/{}'", folder.path(), name), errno);
  return fd;
}

/// Who owns a slot; 0: nobody.
pid_t owner_of(int account, std::uint32_t slot) {
  struct flock lock{};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = slot;
  lock.l_len = 1;
  if (::fcntl(account, F_GETLK, &lock) != 0 || lock.l_type == F_UNLCK) return 0;
  return std::max(lock.l_pid, 0);
}

constexpr off_t place_of_slot(std::uint32_t slot) {
  return static_cast<off_t>(offsetof(guard_account, slots) + slot * sizeof(guard_slot));
}

/// What a file says at a place; zeros where it ends.
template <typename T>
T read_at(int fd, off_t place) {
  T value{};
  if (::pread(fd, &value, sizeof value, place) != static_cast<ssize_t>(sizeof value)) value = T{};
  return value;
}

/// The same files, by another name each: they are there for as long as one of them is.
bool link_pages(const Directory& folder, const Directory& other, const std::vector<Limit>& limits) {
  const auto pages = Pages::open(other);
  const auto theirs = other.subdirectory(kPagesFolder);
  if (!pages || !theirs || pages->limits() != limits) return false;
  return std::ranges::all_of(std::array{kLimitsPage, kAccountPage}, [&](const char* page) {
    return ::linkat(theirs->fd(), page, folder.fd(), page, 0) == 0;
  });
}

}  // namespace

Status make_pages(const Directory& task, const std::vector<Limit>& limits,
                  const std::vector<Directory>& others) {
  DROVER_TRY(const auto page, page_of(limits, 1));
  DROVER_CHECK_OK(task.remove_tree(kPagesFolder));
  DROVER_TRY(const auto folder, task.make_subdirectory(kPagesFolder, 0755));
  for (const auto& other : others) {
    if (link_pages(folder, other, limits)) return {};
    for (const char* half : {kLimitsPage, kAccountPage}) DROVER_CHECK_OK(folder.remove_tree(half));
  }
  DROVER_TRY(const auto own, make_page(folder, kLimitsPage, 0444));
  DROVER_CHECK_OK(write_page(own.get(), &page, sizeof page));
  // Whatever users the container's processes have.
  DROVER_TRY(const auto account, make_page(folder, kAccountPage, 0666));
  const guard_account none{};
  return write_page(account.get(), &none, sizeof none);
}

Result<Pages> Pages::open(const Directory& task) {
  DROVER_TRY(const auto folder, task.subdirectory(kPagesFolder));
  Pages pages;
  DROVER_TRY(pages.limits_page_, folder.open_file(kLimitsPage, O_RDWR));
  DROVER_TRY(pages.account_, folder.open_file(kAccountPage, O_RDWR));
  const auto page = read_at<guard_limits>(pages.limits_page_.get(), 0);
  if (page.magic != GUARD_LIMITS_MAGIC || page.version != GUARD_LIMITS_VERSION || page.count > GUARD_GPUS)
    return fail(ErrorKind::kCorrupt, fmt::format("'{}/{}' is no page of limits", folder.path(), kLimitsPage));
  for (std::uint32_t i = 0; i < page.count; ++i) {
    const auto& entry = page.gpus[i];
    pages.limits_.push_back({{entry.uuid, ::strnlen(entry.uuid, sizeof entry.uuid)},
                             entry.bytes,
                             static_cast<int>(page.turns[i].milli)});
  }
  DROVER_CHECK_OK(pages.keep_size());  // an earlier version's was shorter
  return pages;
}

bool Pages::are_there() const {
  struct stat info{};
  return ::fstat(limits_page_.get(), &info) == 0 && info.st_nlink > 0;
}

Status Pages::set_limits(const std::vector<Limit>& limits) {
  const auto is_for_the_same = [](const Limit& one, const Limit& other) {
    return one.gpu == other.gpu && (one.milli == 0) == (other.milli == 0);
  };
  if (!std::ranges::equal(limits, limits_, is_for_the_same))
    return fail(ErrorKind::kInvalid, "The limits of a container that runs are for the GPUs that it has");
  const auto generation = read_at<guard_limits>(limits_page_.get(), 0).generation;
  DROVER_TRY(const auto page, page_of(limits, generation + 1));
  // Whose turn it is, is written by somebody else meanwhile.
  DROVER_CHECK_OK(write_page(limits_page_.get(), &page, offsetof(guard_limits, turns)));
  for (std::size_t i = 0; i < limits.size(); ++i) {
    const auto milli = static_cast<std::uint32_t>(limits[i].milli);
    const auto place = offsetof(guard_limits, turns) + i * sizeof(guard_turn) + offsetof(guard_turn, milli);
    DROVER_CHECK_OK(write_page(limits_page_.get(), &milli, sizeof milli, place));
  }
  limits_ = limits;
  return {};
}

Status Pages::keep_size() {
  constexpr auto kSize = static_cast<off_t>(sizeof(guard_account));
  struct stat info{};
  if (::fstat(account_.get(), &info) != 0)
    return fail_errno("Failed to look at the account of a share", errno);
  if (info.st_size == kSize) return {};
  if (::ftruncate(account_.get(), kSize) != 0)
    return fail_errno("Failed to put the size of the account of a share right", errno);
  return {};
}

Status Pages::tell_pid(std::uint32_t slot) {
  const auto place = place_of_slot(slot) + static_cast<off_t>(offsetof(guard_slot, host_pid));
  for (int i = 0; i < kOwnersOfASlot; ++i) {
    const auto owner = static_cast<std::uint32_t>(owner_of(account_.get(), slot));
    if (owner == 0 || read_at<std::uint32_t>(account_.get(), place) == owner) return {};
    if (::pwrite(account_.get(), &owner, sizeof owner, place) != sizeof owner)
      return fail_errno("Failed to write the account of a share", errno);
  }
  return {};
}

Result<std::vector<GuardedProcess>> Pages::look() {
  DROVER_CHECK_OK(keep_size());
  const auto used = read_at<std::uint32_t>(account_.get(), offsetof(guard_account, slots_used));
  std::vector<GuardedProcess> processes;
  for (std::uint32_t slot = 0; slot < std::min<std::uint32_t>(used, GUARD_SLOTS); ++slot) {
    DROVER_CHECK_OK(tell_pid(slot));
    const auto owner = owner_of(account_.get(), slot);
    if (owner == 0) continue;
    const auto said = read_at<guard_slot>(account_.get(), place_of_slot(slot));
    GuardedProcess process{owner, {}};
    for (std::size_t i = 0; i < limits_.size(); ++i)
      process.charged.push_back((said.held[i] >> 32) * GUARD_UNIT);
    processes.push_back(std::move(process));
  }
  return processes;
}

std::vector<std::uint64_t> Pages::refused() {
  using Counts = std::array<std::uint64_t, GUARD_GPUS>;
  const auto said = read_at<Counts>(account_.get(), offsetof(guard_account, refused));
  refused_.resize(limits_.size());
  for (std::size_t i = 0; i < refused_.size(); ++i)
    refused_[i] = std::max(refused_[i], std::min(said[i], kMostRefused));
  return refused_;
}

}  // namespace drover::share
