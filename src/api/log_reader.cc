#include "api/log_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace drover::api {
namespace {

constexpr std::size_t kLogPiece = 64 * 1024;
constexpr int kMaxGenerations = 64;

/// Where the last `lines` lines of a file begin, and how many of them lie before its start.
struct Tail {
  std::uint64_t offset = 0;
  std::int64_t missing = 0;
};

/// Reads `most` bytes, and no more: if they hold fewer lines, these are all.
Result<Tail> find_tail(const SandboxFile& file, std::int64_t lines, std::uint64_t most) {
  std::uint64_t end = file.size;
  const std::uint64_t begin = end - std::min(end, most);
  bool at_end = true;
  while (end > begin) {
    const auto length = std::min<std::uint64_t>(end - begin, kLogPiece);
    DROVER_TRY(const auto piece, file.read(end - length, length));
    for (std::size_t i = piece.size(); i-- > 0;) {
      const bool last_byte = std::exchange(at_end, false);  // the break that ends the last line starts none
      if (piece[i] != '\n' || last_byte) continue;
      if (--lines == 0) return Tail{end - length + i + 1, 0};
    }
    end -= length;
  }
  if (begin > 0) return Tail{begin, 0};
  return Tail{0, file.size == 0 ? lines : lines - 1};
}

}  // namespace

LogReader::LogReader(std::string folder, std::string name, User reader)
    : folder_(std::move(folder)), name_(std::move(name)), reader_(std::move(reader)) {}

std::vector<SandboxFile> LogReader::generations() const {
  std::vector<SandboxFile> files;
  const auto sandbox = Sandbox::open(folder_, reader_);
  for (int number = 0; sandbox && number < kMaxGenerations; ++number) {
    auto file = sandbox->file(number == 0 ? name_ : fmt::format("{}.{}", name_, number));
    if (!file && number > 0) break;
    if (file) files.push_back(std::move(*file));  // between two files there is no newest for a moment
  }
  return files;
}

std::size_t LogReader::find_position(const std::vector<SandboxFile>& files) const {
  const auto found = std::find_if(files.begin(), files.end(), [this](const SandboxFile& file) {
    return file.inode == position_.inode && file.size >= position_.offset;
  });
  return static_cast<std::size_t>(found - files.begin());
}

void LogReader::seek(LogPosition position) {
  position_ = position;
  file_.reset();
  piece_.clear();
  taken_ = 0;
  left_.reset();
  if (position.inode != 0) find_file();  // now: its inode is not used again while it is open
}

Status LogReader::seek_tail(std::int64_t lines) {
  seek({});
  std::uint64_t most = kMostTail;
  for (auto& file : generations()) {
    if (file.size == 0) continue;
    const auto tail = lines == 0 ? Result<Tail>(Tail{file.size, 0}) : find_tail(file, lines, most);
    if (!tail) return Failure(tail.error());
    most -= file.size - tail->offset;
    position_ = {file.inode, tail->offset};
    file_ = std::move(file);
    if (tail->missing == 0 || most == 0) break;
    lines = tail->missing;
  }
  return {};
}

bool LogReader::find_file() {
  auto files = generations();
  const auto index = find_position(files);
  if (index == files.size()) return next_file();
  file_ = std::move(files[index]);
  return true;
}

/// None without content: it goes when the task starts again.
bool LogReader::next_file() {
  auto files = generations();
  auto index = find_position(files);
  const auto same = std::ranges::find(files, position_.inode, &SandboxFile::inode);
  if (index == files.size() && same != files.end()) {  // the task has cut it off
    position_.offset = 0;
    file_ = std::move(*same);
    return file_->size > 0;
  }
  if (index == files.size()) {
    position_ = {};
    file_.reset();
  }
  while (index > 0 && files[index - 1].size == 0) --index;
  if (index == 0) return false;
  file_ = std::move(files[index - 1]);  // of all that there are the oldest, when ours was dropped
  position_ = {file_->inode, 0};
  return true;
}

/// From the position on, and never over the end of a file.
Result<std::string> LogReader::read_piece() {
  if (!file_ && !find_file()) return std::string();
  while (true) {
    DROVER_TRY(auto piece, file_->read(position_.offset, kLogPiece));
    if (piece.empty()) {
      // A file that is not the newest any more never grows again: what was written between our look at its
      // end and the rotation is read before we leave it.
      const auto files = generations();
      if (find_position(files) == 0) return piece;
      DROVER_TRY(piece, file_->read(position_.offset, kLogPiece));
    }
    if (!piece.empty() || !next_file()) return piece;
  }
}

Result<std::string_view> LogReader::peek() {
  if (!seen().empty() || left_ == 0) return seen();
  taken_ = 0;
  DROVER_TRY(piece_, read_piece());
  if (left_ && piece_.size() > *left_) piece_.resize(*left_);
  return seen();
}

void LogReader::take(std::size_t bytes) {
  taken_ += bytes;
  position_.offset += bytes;
  if (left_) *left_ -= bytes;
}

Result<std::string> LogReader::read() {
  DROVER_TRY(const auto piece, peek());
  std::string taken(piece);
  take(taken.size());
  return taken;
}

Result<std::uint64_t> LogReader::pending() const {
  const auto files = generations();
  const auto index = find_position(files);
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < files.size() && i <= index; ++i) bytes += files[i].size;
  return index < files.size() ? bytes - position_.offset : bytes;
}

Status LogReader::stop_at_end() {
  return pending().map([this](std::uint64_t bytes) { left_ = bytes; });
}

bool LogReader::at_line_start() {
  if (position_.offset == 0 || (!file_ && !find_file()) || position_.offset == 0) return true;
  return file_->read(position_.offset - 1, 1).value_or("\n") == "\n";
}

std::vector<LogPosition> LogReader::beginnings() const {
  std::vector<LogPosition> positions;
  for (const auto& file : generations()) positions.insert(positions.begin(), {file.inode, 0});
  return positions;
}

LogPosition LogReader::end() const {
  for (const auto& file : generations())
    if (file.size > 0) return {file.inode, file.size};
  return {};
}

}  // namespace drover::api
