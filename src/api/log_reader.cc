#include "api/log_reader.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace drover::api {
namespace {

constexpr std::size_t kPiece = 64 * 1024;

/// Where the last `lines` lines of a file begin, and how many lines are missing before its start.
struct Tail {
  std::uint64_t offset = 0;
  std::int64_t missing = 0;
};

Result<Tail> find_tail(const SandboxFile& file, std::int64_t lines) {
  std::uint64_t end = file.size;
  bool at_end = true;
  while (end > 0) {
    const auto length = std::min<std::uint64_t>(end, kPiece);
    DROVER_TRY(const auto piece, file.read(end - length, length));
    for (std::size_t i = piece.size(); i-- > 0;) {
      const bool last_byte = std::exchange(at_end, false);  // the break that ends the last line starts none
      if (piece[i] != '\n' || last_byte) continue;
      if (--lines == 0) return Tail{end - length + i + 1, 0};
    }
    end -= length;
  }
  return Tail{0, file.size == 0 ? lines : lines - 1};
}

}  // namespace

LogReader::LogReader(std::string folder, std::string name, uid_t reader)
    : folder_(std::move(folder)), name_(std::move(name)), reader_(reader) {}

std::optional<SandboxFile> LogReader::open(const std::string& name) const {
  const auto sandbox = Sandbox::open(folder_, reader_);
  auto file = sandbox ? sandbox->file(name) : Failure(sandbox.error());
  if (!file) return std::nullopt;
  return std::move(*file);
}

void LogReader::seek(LogPosition position) {
  position_ = position;
  file_.reset();
}

Status LogReader::seek_tail(std::int64_t lines) {
  const std::vector<std::string> generations = {name_, name_ + ".1"};
  for (const auto& generation : generations) {
    auto file = open(generation);
    if (!file) continue;
    const bool nothing = lines == 0;
    DROVER_TRY(const auto tail, nothing ? Result<Tail>(Tail{file->size, 0}) : find_tail(*file, lines));
    position_ = {file->inode, tail.offset};
    file_ = std::move(file);
    if (tail.missing == 0) break;
    lines = tail.missing;
  }
  return {};
}

bool LogReader::find_file() {
  auto current = open(name_);
  auto previous = open(name_ + ".1");
  // A shorter file is another one that was given the same inode.
  const auto is_here = [&](const auto& file) {
    return file && file->inode == position_.inode && file->size >= position_.offset;
  };
  if (!is_here(current) && !is_here(previous)) {
    file_ = previous ? std::move(previous) : std::move(current);
    if (file_) position_ = {file_->inode, 0};
  } else {
    file_ = is_here(current) ? std::move(current) : std::move(previous);
  }
  return file_.has_value();
}

bool LogReader::next_file() {
  auto current = open(name_);
  if (!current || current->inode == position_.inode) return false;
  auto previous = open(name_ + ".1");
  const bool skipped_one = previous && previous->inode != position_.inode;
  file_ = skipped_one ? std::move(previous) : std::move(current);
  position_ = {file_->inode, 0};
  return true;
}

Result<std::string> LogReader::read() {
  if (!file_ && !find_file()) return std::string();
  while (true) {
    DROVER_TRY(auto piece, file_->read(position_.offset, kPiece));
    if (piece.empty()) {
      // What was written between our look at the end and the rotation is still in the old file.
      const auto now = open(name_);
      if (!now || now->inode == position_.inode) return piece;
      DROVER_TRY(piece, file_->read(position_.offset, kPiece));
    }
    if (!piece.empty()) {
      position_.offset += piece.size();
      return piece;
    }
    if (!next_file()) return piece;
  }
}

std::uint64_t LogReader::pending() {
  if (!file_ && !find_file()) return 0;
  const auto current = open(name_);
  const auto rest = [this](const SandboxFile& file) {
    return file.size > position_.offset ? file.size - position_.offset : 0;
  };
  if (!current || current->inode == position_.inode) return current ? rest(*current) : 0;
  return rest(*file_) + current->size;
}

}  // namespace drover::api
