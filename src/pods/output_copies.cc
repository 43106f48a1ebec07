#include "pods/output_copies.h"

#include <system_error>
#include <thread>

#include "base/stop_after.h"
#include "pods/log_copy.h"

namespace drover::pods {

class OutputCopies::Copy {
 public:
  Copy(std::string task_id, kube::ObjectPath where) : task(std::move(task_id)), pod(std::move(where)) {}

  const std::string task;
  const kube::ObjectPath pod;
  std::stop_source stop;
  bool followed = false;  ///< under the mutex of all
};

OutputCopies::~OutputCopies() {
  stop_.request_stop();
  std::unique_lock lock(mutex_);
  ended_.wait(lock, [this] { return followed_ == 0; });
}

OutputCopies::CopyPointer OutputCopies::begin(const std::string& task, const kube::ObjectPath& pod) {
  return std::make_shared<Copy>(task, pod);
}

void OutputCopies::break_off(const CopyPointer& copy) {
  copy->stop.request_stop();
}

Status OutputCopies::copy(const Copy& copy, bool follow, const std::stop_token& stop) {
  DROVER_TRY(const auto folder, tasks_.subdirectory(copy.task));
  return copy_log(api_, copy.pod, folder, follow, stop);
}

void OutputCopies::has_ended(Copy& copy) {
  const std::lock_guard lock(mutex_);
  copy.followed = false;
  --followed_;
  ended_.notify_all();
}

void OutputCopies::follow(const CopyPointer& copy) {
  {
    const std::lock_guard lock(mutex_);
    if (copy->followed || followed_ >= limits_.followed || stop_.stop_requested()) return;
    ++followed_;
    copy->followed = true;
  }
  try {
    std::thread([this, copy] {
      {
        // Ends with both: with the pod's own end, and with all.
        const std::stop_callback all(stop_.get_token(), [&copy] { copy->stop.request_stop(); });
        (void)this->copy(*copy, true, copy->stop.get_token());
      }
      has_ended(*copy);
    }).detach();
  } catch (const std::system_error&) {  // no thread is left
    has_ended(*copy);
  }
}

Status OutputCopies::finish(const CopyPointer& copy) {
  {
    std::unique_lock lock(mutex_);
    // It ends by itself once the container has.
    ended_.wait_for(lock, limits_.last_words, [&] { return !copy->followed || stop_.stop_requested(); });
    copy->stop.request_stop();
    ended_.wait(lock, [&] { return !copy->followed; });
  }
  const StopAfter limit(limits_.last_words, stop_.get_token());
  const auto copied = this->copy(*copy, false, limit.token());
  return copied || copied.error().kind == ErrorKind::kNotFound ? Status() : copied;
}

}  // namespace drover::pods
