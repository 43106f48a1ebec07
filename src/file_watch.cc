#include "file_watch.h"

#include <fmt/format.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <boost/asio/io_context.hpp>
#include <cerrno>
#include <utility>

namespace drover {

Result<std::unique_ptr<FileWatch>> FileWatch::start(boost::asio::io_context& context,
                                                    const std::filesystem::path& file,
                                                    std::function<void()> changed) {
  constexpr std::uint32_t kChanges =
      IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_ATTRIB | IN_ONLYDIR;
  const auto folder = file.parent_path();
  UniqueFd inotify(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  if (!inotify.valid() || ::inotify_add_watch(inotify.get(), folder.c_str(), kChanges) < 0)
    return fail_errno(fmt::format("Failed to watch '{}'", file.string()), errno);
  return std::unique_ptr<FileWatch>(
      new FileWatch(context, std::move(inotify), file.filename(), std::move(changed)));
}

FileWatch::FileWatch(boost::asio::io_context& context, UniqueFd inotify, std::string name,
                     std::function<void()> changed)
    : inotify_(context, inotify.release()), name_(std::move(name)), changed_(std::move(changed)) {
  wait();
}

void FileWatch::wait() {
  inotify_.async_wait(boost::asio::posix::stream_descriptor::wait_read, [this](const auto& error) {
    if (error) return;
    if (has_changed()) changed_();
    wait();
  });
}

/// Takes all that the kernel has to tell; when it was too much, the file may be among it.
bool FileWatch::has_changed() {
  bool changed = false;
  alignas(inotify_event) std::array<char, 4096> events;
  for (ssize_t size = 0; (size = ::read(inotify_.native_handle(), events.data(), events.size())) > 0;)
    for (std::size_t at = 0; at < static_cast<std::size_t>(size);) {
      const auto* event = reinterpret_cast<const inotify_event*>(events.data() + at);
      changed |= (event->mask & IN_Q_OVERFLOW) != 0 || (event->len > 0 && name_ == &event->name[0]);
      at += sizeof(inotify_event) + event->len;
    }
  return changed;
}

}  // namespace drover
