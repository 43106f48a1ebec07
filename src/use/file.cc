#include "use/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace drover::use {
namespace {

constexpr std::uint32_t kEver = UINT32_MAX;

/// Less when the file ends before.
Result<std::string> read_piece(int fd, std::size_t at, std::size_t size) {
  std::string bytes(size, '\0');
  const auto got = ::pread(fd, bytes.data(), size, static_cast<off_t>(at));
  if (got < 0) return fail_errno("Failed to read the statistics of a task", errno);
  bytes.resize(static_cast<std::size_t>(got));
  return bytes;
}

Status write_piece(int fd, std::string_view bytes, std::size_t at) {
  const auto put = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(at));
  if (put == static_cast<ssize_t>(bytes.size())) return {};
  return fail_errno("Failed to write the statistics of a task", put < 0 ? errno : ENOSPC);
}

}  // namespace

Result<File> File::open(const Directory& task) {
  DROVER_TRY(auto fd, task.open_file(kUseFile, O_RDWR | O_CREAT | O_NONBLOCK, 0600));
  struct stat info{};
  if (::fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode))
    return fail(ErrorKind::kCorrupt, fmt::format("'{}/{}' is no file", task.path(), kUseFile));
  File file(std::move(fd));
  DROVER_CHECK_OK(file.begin());
  return file;
}

Status File::begin() {
  DROVER_TRY(const auto bytes, read_piece(fd_.get(), 0, kFileBytes));
  if (!bytes.starts_with(kMagic)) {
    if (::ftruncate(fd_.get(), 0) != 0) return fail_errno("Failed to begin statistics of a task", errno);
    return write_piece(fd_.get(), kMagic, 0);
  }
  totals_ = totals_in(bytes).value_or(NumberedTotals{});
  const auto seconds = slots_in(bytes, kResolutions[0], 0, kEver);
  if (!seconds.empty()) last_ = seconds.back().time;
  return {};
}

/// A slot of the coarser ones has its finer ones side by side, since each count is a multiple of the next.
Status File::fold_into(std::size_t resolution, std::uint32_t time) {
  const auto &fine = kResolutions[resolution - 1], &coarse = kResolutions[resolution];
  static_assert(kResolutions[0].count % 10 == 0 && kResolutions[1].count % 6 == 0);
  time -= time % coarse.seconds;
  DROVER_TRY(const auto bytes,
             read_piece(fd_.get(), place_of(fine, time), coarse.seconds / fine.seconds * kSlotBytes));
  std::vector<Slot> slots;
  for (std::size_t at = 0; at + kSlotBytes <= bytes.size(); at += kSlotBytes)
    if (auto slot = decode_slot(std::string_view(bytes).substr(at, kSlotBytes)))
      if (slot->time - slot->time % coarse.seconds == time) slots.push_back(std::move(*slot));
  const auto folded = fold(slots, time);
  return folded ? write_piece(fd_.get(), encode(*folded), place_of(coarse, time)) : Status();
}

Status File::add(const Slot& second) {
  const auto before = std::exchange(last_, second.time);
  if (before != 0)
    for (std::size_t resolution = 1; resolution < kResolutions.size(); ++resolution)
      if (before / kResolutions[resolution].seconds != second.time / kResolutions[resolution].seconds)
        DROVER_CHECK_OK(fold_into(resolution, before));
  return write_piece(fd_.get(), encode(second), place_of(kResolutions[0], second.time));
}

Status File::write(const Totals& totals) {
  totals_.totals = totals;
  ++totals_.number;
  return write_piece(fd_.get(), encode(totals_), kTotalsAt[totals_.number % kTotalsAt.size()]);
}

Status File::finish() {
  if (last_ == 0) return {};
  for (std::size_t resolution = 1; resolution < kResolutions.size(); ++resolution)
    DROVER_CHECK_OK(fold_into(resolution, last_));
  return {};
}

Result<History> read_history(const Directory& task, std::size_t resolution, std::uint32_t from,
                             std::uint32_t until) {
  DROVER_TRY(const auto fd, task.open_file(kUseFile, O_RDONLY | O_NONBLOCK));
  DROVER_TRY(const auto bytes, read_piece(fd.get(), 0, kFileBytes));
  if (!bytes.starts_with(kMagic))
    return fail(ErrorKind::kNotFound, fmt::format("'{}/{}' are no statistics", task.path(), kUseFile));
  return History{slots_in(bytes, kResolutions.at(resolution), from, until),
                 totals_in(bytes).value_or(NumberedTotals{}).totals};
}

}  // namespace drover::use
