#include "container/output_record.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>

namespace drover::container {
namespace {

using Entry = std::array<std::uint64_t, 2>;

constexpr Entry kHead = {0x0a'31'44'52'4f'43'45'52, 1};  // "RECORD1\n", and a number for what may come
constexpr std::uint64_t kLeastRecord = 64 << 10, kMostRecord = 4 << 20;
constexpr std::uint64_t kShare = 8;  // of what both outputs may take
constexpr int kOffsetBits = 40;
constexpr std::uint64_t kMostOffset = (1ULL << kOffsetBits) - 1;
constexpr std::uint64_t kLastTime = 253'402'300'800'000'000;  // the year 10000
constexpr std::size_t kMostSegments = 2;
constexpr int kLooks = 5;

Entry pack_run(const OutputRun& run) {
  const auto micros = static_cast<std::uint64_t>(run.at.time_since_epoch().count());
  return {micros << 1 | static_cast<std::uint64_t>(run.stream), run.file << kOffsetBits | run.offset};
}

OutputRun unpack_run(const Entry& entry) {
  const auto micros = entry[0] >> 1;
  if (micros == 0 || micros >= kLastTime) return {.stream = -1};
  return {static_cast<int>(entry[0] & 1), entry[1] >> kOffsetBits, entry[1] & kMostOffset,
          OutputTime(std::chrono::microseconds(micros))};
}

OutputTime now_in_micros() {
  return std::chrono::floor<std::chrono::microseconds>(std::chrono::system_clock::now());
}

UniqueFd open_record(int task, const char* name, int flags) {
  return UniqueFd(::openat(task, name, flags | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
}

bool has_head(int file) {
  Entry head{};
  return ::pread(file, head.data(), sizeof head, 0) == sizeof head && head == kHead;
}

std::uint64_t inode_at(int folder, const char* name) {
  struct stat facts{};
  return ::fstatat(folder, name, &facts, AT_SYMLINK_NOFOLLOW) == 0 ? facts.st_ino : 0;
}

std::uint64_t inode_of(int file) {
  struct stat facts{};
  return ::fstat(file, &facts) == 0 ? facts.st_ino : 0;
}

}  // namespace

OutputRecorder::OutputRecorder(int task, LogLimits limits, OldLog old, Clock clock)
    : task_(task),
      limit_(std::clamp(limits.file_bytes * static_cast<std::uint64_t>(limits.files) / kShare, kLeastRecord,
                        kMostRecord)),
      clock_(clock ? std::move(clock) : now_in_micros) {
  if (old == OldLog::kKeep)
    go_on();
  else
    for (const char* name : {kOutputRecord, kOldOutputRecord}) ::unlinkat(task_, name, 0);
}

void OutputRecorder::go_on() {
  auto file = open_record(task_, kOutputRecord, O_RDWR);
  struct stat facts{};
  if (!file.valid() || !has_head(file.get()) || ::fstat(file.get(), &facts) != 0) return;
  file_ = std::move(file);
  size_ = static_cast<std::uint64_t>(facts.st_size) / sizeof(Entry) * sizeof(Entry);
}

bool OutputRecorder::begin_file() {
  file_.reset();
  ::renameat(task_, kOutputRecord, task_, kOldOutputRecord);
  UniqueFd file(::openat(task_, kOutputRecord, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file.valid()) return false;
  if (::pwrite(file.get(), kHead.data(), sizeof kHead, 0) != sizeof kHead) {
    ::unlinkat(task_, kOutputRecord, 0);
    return false;
  }
  file_ = std::move(file);
  size_ = sizeof kHead;
  return true;
}

bool OutputRecorder::write(const OutputRun& run) {
  if ((!file_.valid() || size_ + sizeof(Entry) > limit_) && !begin_file()) return false;
  const auto entry = pack_run(run);
  // What a full disk has cut off is written over.
  if (::pwrite(file_.get(), entry.data(), sizeof entry, static_cast<off_t>(size_)) != sizeof entry)
    return false;
  size_ += sizeof entry;
  return true;
}

void OutputRecorder::note(int stream, int file) {
  const auto now = clock_();
  if (stream == stream_ && now >= began_ && now - began_ < kLongestRun) return;
  stream_ = -1;
  struct stat facts{};
  if (::fstat(file, &facts) != 0) return;
  const auto offset = static_cast<std::uint64_t>(facts.st_size);
  if (offset > kMostOffset || !write({stream, file_tag(facts.st_ino), offset, now})) return;
  stream_ = stream;
  began_ = now;
}

void OutputRecorder::end_run(int stream) {
  if (stream_ == stream) stream_ = -1;
}

OutputRecord OutputRecord::open(const std::string& sandbox) {
  OutputRecord record;
  record.task_ = std::filesystem::path(sandbox).parent_path().string();
  record.refresh();
  return record;
}

/// Of a file that still grows, what is whole.
std::uint64_t OutputRecord::count_of(const Segment& segment) {
  struct stat facts{};
  if (::fstat(segment.file.get(), &facts) != 0 || facts.st_size < static_cast<off_t>(sizeof kHead)) return 0;
  return static_cast<std::uint64_t>(facts.st_size) / sizeof(Entry) - 1;
}

void OutputRecord::add(UniqueFd file) {
  if (!file.valid() || !has_head(file.get())) return;
  Segment segment{std::move(file), 0, end(), 0};
  segment.inode = inode_of(segment.file.get());
  segment.count = count_of(segment);
  segments_.push_back(std::move(segment));
  if (segments_.size() > kMostSegments) segments_.pop_front();
}

void OutputRecord::refresh() {
  const auto folder = Directory::open(task_);
  if (!folder) return;
  const int task = folder->fd();
  for (int look = 0; look < kLooks; ++look) {
    const auto last = segments_.empty() ? 0 : segments_.back().inode;
    const auto newest = inode_at(task, kOutputRecord);
    // Only now: one that has another in its place does not grow any more. Never fewer than before.
    if (last != 0) segments_.back().count = std::max(segments_.back().count, count_of(segments_.back()));
    if (newest == 0 || newest == last) return;
    auto before = open_record(task, kOldOutputRecord, O_RDONLY);
    auto now = open_record(task, kOutputRecord, O_RDONLY);
    const auto inode_before = inode_of(before.get());
    if (inode_at(task, kOldOutputRecord) != inode_before) continue;  // another took its place meanwhile
    if (inode_before != last) add(std::move(before));
    add(std::move(now));
    return;
  }
}

std::size_t OutputRecord::read(std::uint64_t number, std::span<OutputRun> runs) const {
  for (const auto& segment : segments_) {
    if (number < segment.first || number >= segment.end()) continue;
    const auto index = number - segment.first;
    std::array<Entry, 256> entries;
    const auto most = std::min<std::uint64_t>({runs.size(), entries.size(), segment.count - index});
    const auto got = ::pread(segment.file.get(), entries.data(), most * sizeof(Entry),
                             static_cast<off_t>((index + 1) * sizeof(Entry)));
    const auto count = got < 0 ? 0 : static_cast<std::size_t>(got) / sizeof(Entry);
    std::transform(entries.begin(), entries.begin() + static_cast<std::ptrdiff_t>(count), runs.begin(),
                   unpack_run);
    return count;
  }
  return 0;
}

}  // namespace drover::container
