#include "kube/plugin/folder_watch.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>

#include <array>
#include <utility>

namespace drover::kube {

FolderWatch::FolderWatch(std::string folder)
    : folder_(std::move(folder)),
      inotify_(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  watch();
}

/// Again and again: the folder may be another one by now. Of the same one the kernel keeps one watch.
void FolderWatch::watch() const {
  ::inotify_add_watch(inotify_.get(), folder_.c_str(), IN_CREATE | IN_MOVED_TO | IN_DELETE | IN_ONLYDIR);
}

void FolderWatch::wait(std::chrono::milliseconds patience) {
  watch();
  std::array<pollfd, 2> files{{{inotify_.get(), POLLIN, 0}, {wake_.get(), POLLIN, 0}}};
  ::poll(files.data(), files.size(), static_cast<int>(patience.count()));
  std::array<char, 4096> events;
  while (::read(inotify_.get(), events.data(), events.size()) > 0) {
  }
  eventfd_t calls = 0;
  ::eventfd_read(wake_.get(), &calls);
}

void FolderWatch::wake() const {
  ::eventfd_write(wake_.get(), 1);
}

}  // namespace drover::kube
