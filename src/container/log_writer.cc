#include "container/log_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>

#include "container/output_record.h"

namespace drover::container {
namespace {

constexpr mode_t kMode = 0644;

/// Makes room at `name`, whatever the task has put there. A folder that is not empty stays.
void clear_name(int directory, const std::string& name) {
  if (::unlinkat(directory, name.c_str(), 0) != 0 && errno == EISDIR)
    ::unlinkat(directory, name.c_str(), AT_REMOVEDIR);
}

bool has_content(int directory, const std::string& name) {
  struct stat facts{};
  return ::fstatat(directory, name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(facts.st_mode) &&
         facts.st_size > 0;
}

}  // namespace

Result<LogWriter> LogWriter::create(int sandbox, std::string name, uid_t uid, gid_t gid, LogLimits limits,
                                    OldLog old) {
  LogWriter writer(sandbox, std::move(name), uid, gid, limits);
  if (old == OldLog::kKeep && has_content(sandbox, writer.name_)) writer.move_on();
  clear_name(sandbox, writer.name_);
  DROVER_CHECK_OK(writer.make_file());
  return writer;
}

void LogWriter::record_in(std::shared_ptr<OutputRecorder> recorder, int stream) {
  recorder_ = std::move(recorder);
  stream_ = stream;
}

void LogWriter::note() {
  if (recorder_) recorder_->note(stream_, file_.get());
}

void LogWriter::end_run() {
  if (recorder_) recorder_->end_run(stream_);
}

Status LogWriter::make_file() {
  constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_NOFOLLOW | O_CLOEXEC;
  UniqueFd file(::openat(sandbox_, name_.c_str(), kFlags, kMode));
  if (!file.valid()) return fail_errno(fmt::format("Failed to create the task's '{}'", name_), errno);
  if (::fchown(file.get(), uid_, gid_) != 0 || ::fchmod(file.get(), kMode) != 0)
    return fail_errno(fmt::format("Failed to give the task its '{}'", name_), errno);
  file_ = std::move(file);
  size_ = 0;
  end_run();
  return {};
}

std::string LogWriter::numbered(int number) const {
  return number == 0 ? name_ : fmt::format("{}.{}", name_, number);
}

/// Every file gets the next number; the oldest goes.
void LogWriter::move_on() {
  clear_name(sandbox_, numbered(limits_.files - 1));
  for (int number = limits_.files - 1; number > 0; --number)
    ::renameat(sandbox_, numbered(number - 1).c_str(), sandbox_, numbered(number).c_str());
}

void LogWriter::rotate() {
  move_on();
  if (make_file()) return;
  // The task stands in the way, or the disk is full: keep the file that is open, and its limit.
  if (::ftruncate(file_.get(), 0) == 0) size_ = 0;
  end_run();
}

bool LogWriter::put(std::string_view output) {
  if (!output.empty()) note();
  while (!output.empty()) {
    const auto count = ::write(file_.get(), output.data(), output.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    size_ += static_cast<std::uint64_t>(count);
    output.remove_prefix(static_cast<std::size_t>(count));
  }
  dropped_ += output.size();
  return output.empty();
}

void LogWriter::write(std::string_view output) {
  if (dropped_ > 0) {
    const auto note = fmt::format("\n[drover: {} bytes of output were dropped: no space left]\n", dropped_);
    const auto before = std::exchange(dropped_, 0);
    if (!put(note)) dropped_ = before;
  }
  if (dropped_ > 0)
    dropped_ += output.size();
  else
    put(output);
}

void LogWriter::append(std::string_view output) {
  if (size_ > 0 && size_ + output.size() > limits_.file_bytes) {
    const auto line_end = line_open_ ? output.find('\n') : std::string_view::npos;
    const auto rest_of_line = line_end == std::string_view::npos ? 0 : line_end + 1;
    write(output.substr(0, rest_of_line));
    output.remove_prefix(rest_of_line);
    rotate();
  }
  if (output.empty()) return;
  write(output);
  line_open_ = output.back() != '\n';
}

}  // namespace drover::container
