#include "pods/pod_streams.h"

#include <fmt/format.h>

#include <system_error>
#include <thread>

#include "base/stop_after.h"
#include "pods/log_copy.h"

namespace drover::pods {

class PodStreams::Stream {
 public:
  Stream(std::string task_id, kube::ObjectPath where, std::optional<PodInput> input)
      : task(std::move(task_id)), pod(std::move(where)), reads(std::move(input)) {}

  bool has_terminal() const { return reads && reads->terminal; }

  const std::string task;
  const kube::ObjectPath pod;
  const std::optional<PodInput> reads;
  std::unique_ptr<Attachment> attachment;  ///< while it runs and reads
  std::stop_source stop;
  bool followed = false;  ///< under the mutex of all
};

PodStreams::~PodStreams() {
  stop_.request_stop();
  std::unique_lock lock(mutex_);
  ended_.wait(lock, [this] { return followed_ == 0; });
}

PodStreams::StreamPointer PodStreams::begin(const std::string& task, const kube::ObjectPath& pod,
                                            std::optional<PodInput> reads) {
  return std::make_shared<Stream>(task, pod, std::move(reads));
}

void PodStreams::break_off(const StreamPointer& stream) {
  stream->attachment.reset();
  stream->stop.request_stop();
}

void PodStreams::follow(const StreamPointer& stream) {
  if (stream->reads) join(*stream);
  if (!stream->has_terminal()) follow_log(stream);
}

Status PodStreams::finish(const StreamPointer& stream) {
  if (stream->attachment) stream->attachment->finish(limits_.last_words);
  stream->attachment.reset();
  if (!stream->has_terminal()) return finish_log(stream);
  DROVER_TRY(const auto folder, tasks_.subdirectory(stream->task));
  DROVER_TRY(auto output, TerminalOutput::open(folder, stream->pod));
  return output.catch_up(api_, stop_.get_token());
}

/// One that cannot be joined runs all the same.
void PodStreams::join(Stream& stream) {
  if (stream.attachment || !server_) return;
  auto opened = [&]() -> Result<std::unique_ptr<Attachment>> {
    DROVER_TRY(const auto folder, tasks_.subdirectory(stream.task));
    return Attachment::open(api_, *server_, folder, {stream.pod, *stream.reads});
  }();
  if (opened)
    stream.attachment = std::move(*opened);
  else if (log_)
    log_(fmt::format("Task '{}' cannot be written to: {}", stream.task, to_string(opened.error())));
}

Status PodStreams::copy(const Stream& stream, bool follow, const std::stop_token& stop) {
  DROVER_TRY(const auto folder, tasks_.subdirectory(stream.task));
  return copy_log(api_, stream.pod, folder, follow, stop);
}

void PodStreams::has_ended(Stream& stream) {
  const std::lock_guard lock(mutex_);
  stream.followed = false;
  --followed_;
  ended_.notify_all();
}

void PodStreams::follow_log(const StreamPointer& stream) {
  {
    const std::lock_guard lock(mutex_);
    if (stream->followed || followed_ >= limits_.followed || stop_.stop_requested()) return;
    ++followed_;
    stream->followed = true;
  }
  try {
    std::thread([this, stream] {
      {
        // Ends with both: with the pod's own end, and with all.
        const std::stop_callback all(stop_.get_token(), [&stream] { stream->stop.request_stop(); });
        (void)this->copy(*stream, true, stream->stop.get_token());
      }
      has_ended(*stream);
    }).detach();
  } catch (const std::system_error&) {  // no thread is left
    has_ended(*stream);
  }
}

Status PodStreams::finish_log(const StreamPointer& stream) {
  {
    std::unique_lock lock(mutex_);
    // It ends by itself once the container has.
    ended_.wait_for(lock, limits_.last_words, [&] { return !stream->followed || stop_.stop_requested(); });
    stream->stop.request_stop();
    ended_.wait(lock, [&] { return !stream->followed; });
  }
  const StopAfter limit(limits_.last_words, stop_.get_token());
  const auto copied = this->copy(*stream, false, limit.token());
  return copied || copied.error().kind == ErrorKind::kNotFound ? Status() : copied;
}

}  // namespace drover::pods
