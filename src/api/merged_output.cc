#include "api/merged_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <utility>

namespace drover::api {
namespace {

constexpr std::int64_t kEveryLine = std::numeric_limits<std::int64_t>::max();

/// "INODE:OFFSET"
std::optional<LogPosition> read_position(std::string_view text) {
  LogPosition position;
  const char* const end = text.data() + text.size();
  const auto inode = std::from_chars(text.data(), end, position.inode);
  if (inode.ec != std::errc() || inode.ptr == end || *inode.ptr != ':') return std::nullopt;
  const auto offset = std::from_chars(inode.ptr + 1, end, position.offset);
  return offset.ec == std::errc() ? std::optional(position) : std::nullopt;
}

/// Which line of both outputs is the how many-th.
struct OpenLines {
  std::vector<char> open;  ///< of each output
  std::int64_t begun = 0;

  /// Counts the lines that begin in `bytes`, up to so many in all; returns how many bytes lie before the next
  /// one.
  std::size_t count(std::size_t stream, std::string_view bytes, std::int64_t most) {
    std::size_t at = 0;
    while (at < bytes.size()) {
      if (!open[stream] && begun == most) return at;
      if (!std::exchange(open[stream], true)) ++begun;
      const auto line_end = bytes.find('\n', at);
      if (line_end == std::string_view::npos) break;
      open[stream] = false;
      at = line_end + 1;
    }
    return bytes.size();
  }
};

}  // namespace

MergedOutput::MergedOutput(const std::string& sandbox, const std::vector<std::string>& streams,
                           const User& reader, bool timed)
    : ordered_(timed || streams.size() > 1), record_(engine::OutputRecord::open(sandbox)) {
  for (const auto& stream : streams)
    sources_.push_back({LogReader(sandbox, stream, reader), RunCursor(stream == "stderr" ? 1 : 0)});
}

/// Whether there is something to read. What was known before and is not there now never comes.
Result<bool> MergedOutput::look(Source& source) {
  const auto known = record_.end();
  DROVER_TRY(const auto bytes, source.reader.peek());
  source.settled = bytes.empty() ? known : 0;
  return !bytes.empty();
}

Result<bool> MergedOutput::look_at_all() {
  bool any = false;
  for (auto& source : sources_) {
    DROVER_TRY(const bool found, look(source));
    any |= found;
  }
  return any;
}

/// The shim writes a run down before its bytes: what was seen is known once the record is read after it. And
/// what belongs to a run that was known before we looked has been seen, or is not there.
Result<OutputPiece> MergedOutput::peek() {
  const auto has_none = [](const Source& source) { return source.reader.seen().empty(); };
  if (std::ranges::all_of(sources_, has_none)) {
    DROVER_TRY(const bool any, look_at_all());
    if (!any) return OutputPiece();
    if (ordered_) record_.refresh();
  }
  while (true) {
    std::size_t chosen = sources_.size();
    RunPlace place;
    for (std::size_t i = 0; i < sources_.size(); ++i) {
      if (has_none(sources_[i])) continue;
      const auto found =
          ordered_ ? sources_[i].cursor.find(record_, sources_[i].reader.position()) : RunPlace();
      if (chosen < sources_.size() && found.number >= place.number) continue;
      chosen = i;
      place = found;
    }
    const auto unsure = std::ranges::find_if(
        sources_, [&](const Source& source) { return has_none(source) && source.settled <= place.number; });
    if (ordered_ && unsure != sources_.end()) {
      DROVER_TRY(const bool found, look(*unsure));
      if (found) record_.refresh();
      continue;
    }
    const auto& reader = sources_[chosen].reader;
    return OutputPiece{chosen, reader.seen().substr(0, place.end - reader.position().offset), place.at};
  }
}

void MergedOutput::take(const OutputPiece& piece, std::size_t bytes) {
  sources_[piece.stream].reader.take(bytes);
}

Status MergedOutput::seek_since(TimePoint since) {
  bool written = false, known = false;
  record_.refresh();
  for (auto& [reader, cursor, settled] : sources_) {
    const auto beginnings = reader.beginnings();
    const auto end = reader.end();
    written |= end.offset > 0;
    auto look = RunCursor(cursor);
    const auto found = look.find_since(record_, beginnings, since);
    known |= look.found_any();
    reader.seek(found.value_or(end));
  }
  if (known || !written) return {};
  return fail(
      ErrorKind::kUnsupported, "It is not known when this task wrote its output",
      "it was started by an older version of Drover, or has moved its files itself: leave the time out",
      "?since");
}

MergedOutput::Positions MergedOutput::positions() const {
  Positions positions;
  for (const auto& source : sources_) positions.push_back(source.reader.position());
  return positions;
}

void MergedOutput::go_to(const Positions& positions) {
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    auto& source = sources_[i];
    source.reader.seek(positions[i]);
    source.cursor = RunCursor(source.reader.name() == "stderr" ? 1 : 0);
    source.settled = 0;
  }
}

/// Goes past so many lines, and of the others past the ends of those that had begun before. Returns how many
/// there were.
Result<std::int64_t> MergedOutput::pass_lines(std::int64_t most) {
  OpenLines lines{std::vector<char>(sources_.size(), false)};
  while (true) {
    DROVER_TRY(const auto piece, peek());
    if (piece.bytes.empty()) return lines.begun;
    const auto passed = lines.count(piece.stream, piece.bytes, most);
    const bool at_end = passed < piece.bytes.size();
    take(piece, passed);
    if (at_end) break;
  }
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    auto& reader = sources_[i].reader;
    while (lines.open[i]) {
      DROVER_TRY(const auto bytes, reader.peek());
      if (bytes.empty()) break;
      const auto line_end = bytes.find('\n');
      lines.open[i] = line_end == std::string_view::npos;
      reader.take(std::min(line_end, bytes.size() - 1) + 1);
    }
  }
  return lines.begun;
}

Status MergedOutput::seek_tail(std::int64_t lines) {
  for (auto& source : sources_) {
    const auto earliest = source.reader.position();
    DROVER_TRY(const auto most, source.reader.pending());
    DROVER_CHECK_OK(source.reader.seek_tail(lines));
    DROVER_TRY(const auto left, source.reader.pending());
    if (left > most) source.reader.seek(earliest);
  }
  if (lines == 0 || sources_.size() == 1) return {};
  const auto begin = positions();
  for (auto& source : sources_) DROVER_CHECK_OK(source.reader.stop_at_end());
  DROVER_TRY(const auto all, pass_lines(kEveryLine));
  go_to(begin);
  for (auto& source : sources_) DROVER_CHECK_OK(source.reader.stop_at_end());
  if (all > lines) DROVER_CHECK_OK(pass_lines(all - lines).map([](auto) {}));
  go_to(positions());
  return {};
}

Status MergedOutput::stop_at_end() {
  for (auto& source : sources_) DROVER_CHECK_OK(source.reader.stop_at_end());
  return {};
}

std::string MergedOutput::position() const {
  std::string text;
  for (const auto& [reader, cursor, settled] : sources_)
    text += fmt::format("{}{}={}:{}", text.empty() ? "" : ";", reader.name(), reader.position().inode,
                        reader.position().offset);
  return text;
}

void MergedOutput::seek(const std::string& position) {
  for (auto& source : sources_) {
    const auto at = position.find(source.reader.name() + "=");
    if (at == std::string::npos) continue;
    const auto text = std::string_view(position).substr(at + source.reader.name().size() + 1);
    if (const auto read = read_position(text)) source.reader.seek(*read);
  }
}

}  // namespace drover::api
