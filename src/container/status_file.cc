#include "container/status_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/decode.h"
#include "base/json_text.h"
#include "container/task_folder.h"

namespace drover::container {
namespace {

using nlohmann::json;

constexpr const char* kReservedFile = ".status.reserved";
constexpr off_t kReservedBytes = 8192;
constexpr int kStatusFormat = 1;
constexpr std::size_t kMaxMessage = 2000;

Result<TimePoint> read_time(Decoder& decoder, const std::string& name) {
  const auto text = decoder.string(name);
  if (!text) return TimePoint{};
  return parse_time(*text);
}

}  // namespace

std::string encode(const TaskStatus& status) {
  json value = {{"format", kStatusFormat}};
  if (status.running)
    value["running"] = {{"pid", status.running->pid},
                        {"started_at", format_time(status.running->started_at)},
                        {"containerizer", status.running->containerizer}};
  if (status.ending)
    value["ending"] = {{"exit_status", status.ending->exit_status},
                       {"out_of_memory", status.ending->out_of_memory},
                       {"stopped", status.ending->stopped},
                       {"lost", status.ending->lost},
                       {"message", status.ending->message.substr(0, kMaxMessage)},
                       {"finished_at", format_time(status.ending->finished_at)}};
  return to_text(value);
}

Result<TaskStatus> decode_status(std::string_view text) {
  DROVER_TRY(const auto value, parse_json(text, "The status of the task"));
  std::vector<Error> mistakes;
  Decoder decoder(value, mistakes);
  decoder.format(kStatusFormat);
  TaskStatus status;
  if (auto running = decoder.object("running")) {
    Running read;
    read.pid = static_cast<pid_t>(running->integer("pid", 0, std::numeric_limits<pid_t>::max()).value_or(0));
    DROVER_TRY(read.started_at, read_time(*running, "started_at"));
    read.containerizer = running->string("containerizer").value_or(read.containerizer);
    status.running = read;
  }
  if (auto ending = decoder.object("ending")) {
    Ending read;
    read.exit_status = static_cast<int>(ending->integer("exit_status", 0, 255).value_or(255));
    read.out_of_memory = ending->boolean("out_of_memory").value_or(false);
    read.stopped = ending->boolean("stopped").value_or(false);
    read.lost = ending->boolean("lost").value_or(false);
    read.message = ending->string("message").value_or("");
    DROVER_TRY(read.finished_at, read_time(*ending, "finished_at"));
    status.ending = std::move(read);
  }
  // What a newer Drover knows besides is passed over: how the task ended must not be lost for it.
  if (!mistakes.empty()) return Failure(join_mistakes(mistakes, "The status of the task"));
  return status;
}

Result<std::optional<TaskStatus>> read_status(const Directory& task) {
  if (!task.exists(kStatusFile)) return std::nullopt;
  DROVER_TRY(const auto text, task.read(kStatusFile));
  DROVER_TRY(auto status, decode_status(text));
  return std::optional(std::move(status));
}

Result<StatusFile> StatusFile::reserve(const Directory& task) {
  DROVER_TRY(auto fd, task.open_file(kReservedFile, O_WRONLY | O_CREAT, 0600));
  if (const int error = ::posix_fallocate(fd.get(), 0, kReservedBytes); error != 0)
    return fail_errno(fmt::format("Failed to reserve space for '{}/{}'", task.path(), kStatusFile), error);
  return StatusFile(task, std::move(fd));
}

Status StatusFile::write_running(const Running& running) {
  running_ = running;
  return replace_file(*task_, kStatusFile, encode(TaskStatus{running, std::nullopt}));
}

Status StatusFile::write_ending(const Ending& ending) {
  const auto content = encode(TaskStatus{running_, ending});
  const auto shown = fmt::format("{}/{}", task_->path(), kStatusFile);
  DROVER_CHECK_OK(write_all(reserved_.get(), content, shown));
  if (::ftruncate(reserved_.get(), static_cast<off_t>(content.size())) != 0 ||
      ::fsync(reserved_.get()) != 0 || ::renameat(task_->fd(), kReservedFile, task_->fd(), kStatusFile) != 0)
    return fail_errno(fmt::format("Failed to write '{}'", shown), errno);
  return task_->sync();
}

}  // namespace drover::container
