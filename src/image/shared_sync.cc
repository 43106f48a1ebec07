#include "image/shared_sync.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>

namespace drover::image {

Status SharedSync::sync(const Directory& folder) {
  std::unique_lock lock(mutex_);
  const auto wanted = begun_ + 1;  // one that is under way may have passed over what we wrote
  while (done_ < wanted) {
    if (begun_ > done_) {
      changed_.wait(lock);
      continue;
    }
    const auto mine = ++begun_;
    lock.unlock();
    const int error = ::syncfs(folder.fd()) == 0 ? 0 : errno;
    lock.lock();
    done_ = mine;
    if (error != 0) {
      failed_ = mine;
      error_ = error;
    }
    changed_.notify_all();
  }
  if (failed_ < wanted) return {};
  return fail_errno(fmt::format("Failed to write '{}'", folder.path()), error_);
}

}  // namespace drover::image
