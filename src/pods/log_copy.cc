#include "pods/log_copy.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/algorithm/string/replace.hpp>
#include <cerrno>
#include <cstring>
#include <functional>
#include <sstream>
#include <utility>

#include "base/instant.h"
#include "pods/pod_view.h"

namespace drover::pods {
namespace {

constexpr const char* kPositionFile = "log.position";
constexpr std::size_t kPositionWidth = 255;  ///< of its line, so that one replaces the other
constexpr std::size_t kSeconds = std::string_view("2026-11-27T14:05:09").size();
constexpr std::size_t kNanosDigits = 9;
constexpr std::size_t kLongestTime = 40;
constexpr std::size_t kLongestExcuse = 500;

/// How far a copy has come: after the last whole line.
struct Position {
  std::string pod;  ///< whose it is: each has a clock of its own
  std::string time = "-";
  off_t bytes = 0;  ///< of the file
};

Position read_position(const Directory& folder, const std::string& pod) {
  Position position;
  if (const auto text = folder.read(kPositionFile)) {
    std::istringstream words(*text);
    words >> position.bytes >> position.time >> position.pod;
  }
  if (position.pod != pod) position.time = "-";
  position.pod = pod;
  return position;
}

/// Takes a log with times apart.
class LogLines {
 public:
  /// Takes what was written, and how far that has come after its last whole line.
  using Write = std::function<Status(const std::string& content, const Position& whole)>;

  LogLines(Position position, Write write)
      : position_(std::move(position)), bytes_(position_.bytes), write_(std::move(write)) {}

  Status take(std::string_view piece) {
    std::string content;
    auto whole = position_;
    for (const char c : piece) {
      if (in_head_ && take_head(c)) continue;
      if (is_excuse_) {
        excuse({&c, 1});
      } else if (!is_known_) {
        content += c;
      }
      if (c == '\n') end_line(content.size(), whole);
    }
    return write(content, whole);
  }
  /// What ends without a line's end.
  Status finish() {
    auto whole = position_;
    if (in_head_) excuse(head_);
    end_line(0, whole);
    DROVER_CHECK_OK(write("", whole));
    if (excuse_.empty()) return {};
    return fail(ErrorKind::kUnavailable, fmt::format("The node says instead of the output: {}", excuse_));
  }

 private:
  /// Whether this character stands before what was written. What has no time is not the container's: a node
  /// that cannot read on says so in the stream.
  bool take_head(char c) {
    if (c != ' ' && c != '\n' && head_.size() < kLongestTime) {
      head_ += c;
      return true;
    }
    in_head_ = false;
    const auto time = c == ' ' ? ordered_time(head_) : "";
    is_excuse_ = time.empty();
    if (is_excuse_) {
      excuse(head_);
    } else {
      is_known_ = time <= position_.time;
      line_time_ = time;
    }
    head_.clear();
    return !is_excuse_;
  }

  void excuse(std::string_view text) {
    for (const char c : text)
      if (excuse_.size() < kLongestExcuse) excuse_ += c == '\n' ? ' ' : c;
  }

  void end_line(std::size_t written, Position& whole) {
    in_head_ = true;
    if (is_known_ || is_excuse_) return;
    whole.bytes = bytes_ + static_cast<off_t>(written);
    if (!line_time_.empty()) whole.time = line_time_;
  }

  Status write(const std::string& content, const Position& whole) {
    DROVER_CHECK_OK(write_(content, whole));
    bytes_ += static_cast<off_t>(content.size());
    position_ = whole;
    return {};
  }

  Position position_;
  off_t bytes_;  ///< of the file, with a line that is not whole yet
  const Write write_;
  std::string head_, line_time_;
  bool in_head_ = true;
  bool is_known_ = false;   ///< whether the line that was met last is in the file already
  bool is_excuse_ = false;  ///< whether it is the node's own
  std::string excuse_;      ///< what the node said instead of the output
};

Error cannot_go_on() {
  return {ErrorKind::kUnavailable,
          fmt::format("'stdout' of the sandbox cannot be gone on with: {}", std::strerror(errno)), "", ""};
}

Status note_position(int file, const Position& position) {
  const auto line = fmt::format(
      "{:<{}}\n", fmt::format("{} {} {}", position.bytes, position.time, position.pod), kPositionWidth);
  if (::pwrite(file, line.data(), line.size(), 0) == static_cast<ssize_t>(line.size())) return {};
  return fail(ErrorKind::kUnavailable,
              fmt::format("It cannot be noted how far the output came: {}", std::strerror(errno)));
}

kube::ApiRequest log_of(const kube::ObjectPath& pod) {
  kube::ApiRequest request{.verb = "get", .path = pod};
  request.path.subresource = "log";
  request.query = {{"container", kContainer}, {"timestamps", "true"}};
  return request;
}

}  // namespace

std::string ordered_time(std::string_view time) {
  if (time.size() <= kSeconds || time.back() != 'Z' || !parse_instant(time)) return "";
  auto fraction = std::string(time.substr(kSeconds, time.size() - kSeconds - 1));
  if (fraction.empty()) fraction = ".";
  fraction.resize(kNanosDigits + 1, '0');
  return fmt::format("{}{}Z", time.substr(0, kSeconds), fraction);
}

Result<UniqueFd> open_output(const Directory& task) {
  DROVER_TRY(const auto sandbox, task.subdirectory(kSandboxFolder));
  // The task's user reads it as himself, whatever the daemon's umask; nobody else comes into the folder.
  constexpr mode_t kMode = 0644;
  DROVER_TRY(auto file, sandbox.open_file("stdout", O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, kMode));
  if (::fchmod(file.get(), kMode) != 0) return Failure(cannot_go_on());
  return file;
}

Status copy_log(kube::Api& api, const kube::ObjectPath& pod, const Directory& task, bool follow,
                const std::stop_token& stop) {
  const auto position = read_position(task, pod.name);
  DROVER_TRY(const auto file, open_output(task));
  // What a copy that broke off wrote last comes again.
  if (::ftruncate(file.get(), position.bytes) != 0) return Failure(cannot_go_on());
  DROVER_TRY(const auto position_file, task.open_file(kPositionFile, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  auto request = log_of(pod);
  if (follow) request.query["follow"] = "true";
  if (position.time.size() > kSeconds)
    request.query["sinceTime"] = fmt::format("{}Z", std::string_view(position.time).substr(0, kSeconds));
  auto noted = position.bytes;
  LogLines lines(position, [&](const std::string& content, const Position& whole) -> Status {
    DROVER_CHECK_OK(write_all(file.get(), content, "stdout"));
    return std::exchange(noted, whole.bytes) == whole.bytes ? Status()
                                                            : note_position(position_file.get(), whole);
  });
  DROVER_CHECK_OK(api.read(request, [&](std::string_view piece) { return lines.take(piece); }, stop));
  return lines.finish();
}

Status append_terminal_log(kube::Api& api, const kube::ObjectPath& pod, int output, std::uint64_t known,
                           const std::stop_token& stop) {
  LogLines lines({.pod = pod.name}, [&](std::string content, const Position&) {
    boost::algorithm::replace_all(content, "\n", "\r\n");
    const auto skipped = std::min<std::uint64_t>(known, content.size());
    known -= skipped;
    return write_all(output, std::string_view(content).substr(skipped), "stdout");
  });
  DROVER_CHECK_OK(api.read(log_of(pod), [&](std::string_view piece) { return lines.take(piece); }, stop));
  return lines.finish();
}

}  // namespace drover::pods
