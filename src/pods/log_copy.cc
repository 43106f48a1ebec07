#include "pods/log_copy.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <string_view>

#include "base/instant.h"
#include "pods/pod_view.h"

namespace drover::pods {
namespace {

constexpr const char* kPositionFile = "log.position";
constexpr int kPositionWidth = 63;  ///< of its line, so that one replaces the other
constexpr std::size_t kSeconds = std::string_view("2026-11-27T14:05:09").size();
constexpr std::size_t kNanosDigits = 9;

/// How far a copy has come: the time of its last line, and the bytes of the file by then.
struct Position {
  std::string time;
  off_t bytes = 0;
};

Position read_position(const Directory& folder) {
  Position position;
  const auto text = folder.read(kPositionFile);
  if (!text) return position;
  const auto space = text->find(' ');
  if (space == std::string::npos) return position;
  std::from_chars(text->data() + space + 1, text->data() + text->size(), position.bytes);
  position.time = text->substr(0, space);
  return position;
}

/// Takes a log with times apart.
class LogLines {
 public:
  LogLines(UniqueFd file, UniqueFd position_file, Position position)
      : file_(std::move(file)), position_file_(std::move(position_file)), position_(std::move(position)) {}

  Status take(std::string_view piece) {
    rest_ += piece;
    std::string whole;
    std::size_t begin = 0;
    for (auto end = rest_.find('\n'); end != std::string::npos; end = rest_.find('\n', begin)) {
      add(std::string_view(rest_).substr(begin, end + 1 - begin), whole);
      begin = end + 1;
    }
    rest_.erase(0, begin);
    return write(whole);
  }
  /// What ends without a line's end.
  Status finish() {
    std::string whole;
    if (!rest_.empty()) add(rest_, whole);
    rest_.clear();
    return write(whole);
  }

 private:
  void add(std::string_view line, std::string& whole) {
    const auto space = line.find(' ');
    const auto time = ordered_time(line.substr(0, space));
    if (time.empty() || space == std::string_view::npos) {  // no time stands before it
      if (!is_known_) whole += line;
      return;
    }
    is_known_ = !position_.time.empty() && time <= position_.time;
    if (is_known_) return;
    newest_ = time;
    whole += line.substr(space + 1);
  }

  Status write(const std::string& text) {
    if (text.empty()) return {};
    DROVER_CHECK_OK(write_all(file_.get(), text, "stdout"));
    position_.bytes += static_cast<off_t>(text.size());
    if (newest_ > position_.time) position_.time = newest_;
    const auto line =
        fmt::format("{:<{}}\n", fmt::format("{} {}", position_.time, position_.bytes), kPositionWidth);
    if (::pwrite(position_file_.get(), line.data(), line.size(), 0) == static_cast<ssize_t>(line.size()))
      return {};
    return fail(ErrorKind::kUnavailable,
                fmt::format("It cannot be noted how far the output came: {}", std::strerror(errno)));
  }

  const UniqueFd file_, position_file_;
  Position position_;
  std::string rest_, newest_;
  bool is_known_ = false;  ///< whether the line that was met last is in the file already
};

Result<UniqueFd> open_output(const LogTarget& target, off_t size) {
  DROVER_TRY(auto file, target.sandbox.open_file("stdout", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  // What a copy that was killed wrote last comes again.
  if (::ftruncate(file.get(), size) != 0)
    return fail(ErrorKind::kUnavailable,
                fmt::format("'stdout' of the sandbox cannot be gone on with: {}", std::strerror(errno)));
  if (::geteuid() == 0 && ::fchown(file.get(), target.owner, target.group) != 0)
    return fail(ErrorKind::kUnavailable,
                fmt::format("'stdout' of the sandbox cannot be given to its user: {}", std::strerror(errno)));
  return file;
}

}  // namespace

std::string ordered_time(std::string_view time) {
  if (time.size() <= kSeconds || time.back() != 'Z' || !parse_instant(time)) return "";
  auto fraction = std::string(time.substr(kSeconds, time.size() - kSeconds - 1));
  if (fraction.empty()) fraction = ".";
  fraction.resize(kNanosDigits + 1, '0');
  return fmt::format("{}{}Z", time.substr(0, kSeconds), fraction);
}

Status copy_log(kube::Api& api, const kube::ObjectPath& pod, const LogTarget& target, bool follow,
                const std::stop_token& stop) {
  auto position = read_position(target.task);
  DROVER_TRY(auto file, open_output(target, position.bytes));
  DROVER_TRY(auto position_file, target.task.open_file(kPositionFile, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  kube::ApiRequest request{.verb = "get", .path = pod};
  request.path.subresource = "log";
  request.query = {{"container", kContainer}, {"timestamps", "true"}};
  if (follow) request.query["follow"] = "true";
  if (!position.time.empty())
    request.query["sinceTime"] = fmt::format("{}Z", std::string_view(position.time).substr(0, kSeconds));
  LogLines lines(std::move(file), std::move(position_file), std::move(position));
  DROVER_CHECK_OK(api.read(request, [&](std::string_view piece) { return lines.take(piece); }, stop));
  return lines.finish();
}

}  // namespace drover::pods
