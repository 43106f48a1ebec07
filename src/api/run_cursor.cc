#include "api/run_cursor.h"

#include <algorithm>
#include <utility>

namespace drover::api {
namespace {

constexpr std::size_t kRunsAtOnce = 256;

}  // namespace

/// The next one of this output, wherever it is.
std::optional<RunCursor::Found> RunCursor::next(const engine::OutputRecord& record) {
  next_ = std::max(next_, record.begin());
  while (next_ < record.end()) {
    if (next_ < first_ || next_ >= first_ + runs_.size()) {
      runs_.resize(kRunsAtOnce);
      runs_.resize(record.read(next_, runs_));
      first_ = next_;
      if (runs_.empty()) break;
    }
    const auto number = next_++;
    if (const auto& run = runs_[number - first_]; run.stream == stream_) return Found{number, run};
  }
  return std::nullopt;
}

/// Goes to the first run in it. Inodes are used again, and files can be emptied: what begins further in front
/// than what came before is another file.
void RunCursor::enter(const engine::OutputRecord& record, std::uint64_t file) {
  if (ahead_) next_ = ahead_->number;
  current_.reset();
  ahead_.reset();
  auto begin = next_;
  std::optional<std::uint64_t> previous;
  while (const auto found = next(record)) {
    if (found->run.file != file) continue;
    if (!previous || found->run.offset < *previous || found->run.offset == 0) begin = found->number;
    previous = found->run.offset;
  }
  next_ = begin;
}

/// Goes on to the next run, if it is in that file and begins at that offset at the latest.
bool RunCursor::advance(const engine::OutputRecord& record, std::uint64_t file, std::uint64_t offset) {
  if (!ahead_) ahead_ = next(record);
  const bool follows = ahead_ && ahead_->run.file == file && ahead_->run.offset <= offset &&
                       (!current_ || ahead_->run.offset >= current_->run.offset);
  if (!follows) return false;
  before_ = ahead_->number;
  current_ = std::exchange(ahead_, std::nullopt);
  return true;
}

RunPlace RunCursor::find(const engine::OutputRecord& record, LogPosition position) {
  const auto file = engine::file_tag(position.inode);
  if (!last_ || last_->inode != position.inode || position.offset < last_->offset) enter(record, file);
  last_ = position;
  while (advance(record, file, position.offset)) {
  }
  RunPlace place;
  place.number = before_;
  if (current_) place.at = current_->run.at;
  if (ahead_ && ahead_->run.file == file && ahead_->run.offset > position.offset)
    place.end = ahead_->run.offset;
  return place;
}

std::optional<LogPosition> RunCursor::find_since(const engine::OutputRecord& record,
                                                 const std::vector<LogPosition>& beginnings,
                                                 engine::OutputTime since) {
  for (const auto& beginning : beginnings) {
    const auto file = engine::file_tag(beginning.inode);
    enter(record, file);
    while (advance(record, file, RunPlace().end))
      if (current_->run.at >= since) return LogPosition{beginning.inode, current_->run.offset};
  }
  return std::nullopt;
}

}  // namespace drover::api
