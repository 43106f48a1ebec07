#include "container/shim_watcher.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <utility>

#include "base/pidfd.h"

namespace drover::container {
namespace {

constexpr int kStartingPollMs = 50;
constexpr int kSettlingPollMs = 1000;

void reap(int pidfd) {
  siginfo_t info{};
  // ECHILD when an earlier daemon was its parent.
  while (::waitid(P_PIDFD, static_cast<id_t>(pidfd), &info, WEXITED) < 0 && errno == EINTR) {
  }
}

bool epoll_add(int epoll, int fd) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = fd;
  return ::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

}  // namespace

Result<std::unique_ptr<ShimWatcher>> ShimWatcher::start(Callbacks callbacks) {
  std::unique_ptr<ShimWatcher> watcher(new ShimWatcher(std::move(callbacks)));
  watcher->epoll_.reset(::epoll_create1(EPOLL_CLOEXEC));
  watcher->wake_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!watcher->epoll_.valid() || !watcher->wake_.valid() ||
      !epoll_add(watcher->epoll_.get(), watcher->wake_.get()))
    return fail_errno("Failed to watch processes", errno);
  watcher->thread_ = std::thread([raw = watcher.get()] { raw->run(); });
  return watcher;
}

ShimWatcher::~ShimWatcher() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  if (wake_.valid()) ::eventfd_write(wake_.get(), 1);
  if (thread_.joinable()) thread_.join();
}

Status ShimWatcher::add(const std::string& task_id, UniqueFd shim, bool starting) {
  const std::lock_guard lock(mutex_);
  if (shims_.contains(task_id)) return {};
  const int fd = shim.get();
  if (starting) starting_.insert(task_id);
  shims_.emplace(task_id, std::move(shim));
  if (epoll_add(epoll_.get(), fd)) {
    if (starting) ::eventfd_write(wake_.get(), 1);
    return {};
  }
  const int error = errno;
  shims_.erase(task_id);
  starting_.erase(task_id);
  return fail_errno(fmt::format("Failed to watch the shim of '{}'", task_id), error);
}

Status ShimWatcher::signal(const std::string& task_id, int signal) {
  const std::lock_guard lock(mutex_);
  const auto found = shims_.find(task_id);
  if (found == shims_.end() && settling_.contains(task_id)) return {};
  if (found == shims_.end())
    return fail(ErrorKind::kNotFound, fmt::format("Task '{}' does not run here", task_id));
  if (!send_signal(found->second, signal) && errno != ESRCH)
    return fail_errno(fmt::format("Failed to stop task '{}'", task_id), errno);
  return {};
}

bool ShimWatcher::watches(const std::string& task_id) const {
  const std::lock_guard lock(mutex_);
  const auto settling = settling_.find(task_id);
  return shims_.contains(task_id) || (settling != settling_.end() && settling->second != Settling::kFirst);
}

UniqueFd ShimWatcher::forget(const std::string& task_id) {
  UniqueFd shim;
  {
    std::unique_lock lock(mutex_);
    settled_.wait(lock, [&] {
      const auto settling = settling_.find(task_id);
      return settling == settling_.end() || settling->second == Settling::kToBeAsked;
    });
    starting_.erase(task_id);
    settling_.erase(task_id);
    if (auto node = shims_.extract(task_id); !node.empty()) {
      ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, node.mapped().get(), nullptr);
      shim = std::move(node.mapped());
    }
  }
  const std::lock_guard quiet(callback_mutex_);  // until it is not asked whether it has started
  return shim;
}

void ShimWatcher::ask_starting() {
  std::set<std::string> asked;
  {
    const std::lock_guard lock(mutex_);
    asked = starting_;
  }
  for (const auto& task_id : asked) {
    const std::lock_guard quiet(callback_mutex_);
    if (!watches(task_id) || !callbacks_.has_started(task_id)) continue;
    const std::lock_guard lock(mutex_);
    starting_.erase(task_id);
  }
}

void ShimWatcher::settle(const std::string& task_id, Attempt attempt) {
  const auto ask = [this, task_id] {
    const bool settled = callbacks_.ended(task_id);
    {
      const std::lock_guard lock(mutex_);
      if (settled)
        settling_.erase(task_id);
      else
        settling_[task_id] = Settling::kToBeAsked;
    }
    settled_.notify_all();
    if (!settled) ::eventfd_write(wake_.get(), 1);
  };
  if (!threads_.post(attempt, ask)) ask();
}

void ShimWatcher::settle_again() {
  std::set<std::string> asked;
  {
    const std::lock_guard lock(mutex_);
    for (auto& [task_id, state] : settling_)
      if (state == Settling::kToBeAsked) {
        state = Settling::kAgain;
        asked.insert(task_id);
      }
  }
  for (const auto& task_id : asked) settle(task_id, kLaterAttempt);
}

void ShimWatcher::end(int shim) {
  const std::lock_guard quiet(callback_mutex_);
  std::string task_id;
  UniqueFd ended;
  bool starting = false;
  {
    const std::lock_guard lock(mutex_);
    const auto found = std::find_if(shims_.begin(), shims_.end(),
                                    [shim](const auto& entry) { return entry.second.get() == shim; });
    if (found == shims_.end()) return;
    task_id = found->first;
    ended = std::move(found->second);
    shims_.erase(found);
    starting = starting_.erase(task_id) > 0;
    settling_[task_id] = Settling::kFirst;
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, shim, nullptr);
  }
  reap(shim);
  if (starting) callbacks_.has_started(task_id);
  settle(task_id, kFirstAttempt);
}

void ShimWatcher::run() {
  std::array<epoll_event, 64> events{};
  while (true) {
    int timeout = -1;
    {
      const std::lock_guard lock(mutex_);
      if (stopping_) return;
      if (std::ranges::any_of(settling_, [](const auto& one) { return one.second == Settling::kToBeAsked; }))
        timeout = kSettlingPollMs;
      if (!starting_.empty()) timeout = kStartingPollMs;
    }
    const int count = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), timeout);
    for (int i = 0; i < count; ++i) {
      const int fd = events[static_cast<std::size_t>(i)].data.fd;
      eventfd_t ignored = 0;
      if (fd == wake_.get())
        ::eventfd_read(fd, &ignored);
      else
        end(fd);
    }
    ask_starting();
    if (count == 0) settle_again();
  }
}

Status await_process(int pidfd, std::chrono::milliseconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  pollfd waited{pidfd, POLLIN, 0};
  while (true) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left.count() < 0)
      return fail(ErrorKind::kTimeout, fmt::format("A process did not end within {} ms", timeout.count()));
    if (::poll(&waited, 1, static_cast<int>(std::min<std::int64_t>(left.count(), 3'600'000))) > 0) break;
  }
  reap(pidfd);
  return {};
}

}  // namespace drover::container
