#include "cli/top/watcher.h"

#include <time.h>

#include <deque>
#include <utility>

namespace drover::cli::top {
namespace {

using std::chrono::steady_clock;

constexpr int kShareOfTime = 100;
constexpr std::chrono::milliseconds kPatienceAtEnd{200};

/// Of this thread.
std::chrono::nanoseconds processor_time() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

Result<Snapshot> look_at(Source& source) {
  try {
    return source.look();
  } catch (const std::exception& error) {
    return fail(ErrorKind::kInternal, std::string("The daemon's answer makes no sense: ") + error.what());
  }
}

}  // namespace

struct Watcher::Shared {
  Shared(Source the_source, std::chrono::milliseconds the_interval, std::function<void()> the_told)
      : source(std::move(the_source)), told(std::move(the_told)), interval(the_interval) {}

  Source source;  ///< of the thread alone
  std::mutex mutex;
  std::condition_variable changed;
  std::function<void()> told;
  std::chrono::milliseconds interval;
  bool paused = false;
  bool ending = false;
  bool ended = false;
  std::deque<std::pair<std::string, bool>> stops;
  News news;

  void tell() {
    if (told) told();
  }
};

Watcher::Watcher(Source source, std::chrono::milliseconds interval, std::function<void()> told)
    : shared_(std::make_shared<Shared>(std::move(source), interval, std::move(told))),
      thread_([shared = shared_] { run(shared); }) {}

bool Watcher::close() {
  std::unique_lock lock(shared_->mutex);
  if (!thread_.joinable()) return shared_->ended;
  shared_->ending = true;
  shared_->told = nullptr;
  shared_->changed.notify_all();
  const bool ended = shared_->changed.wait_for(lock, kPatienceAtEnd, [&] { return shared_->ended; });
  lock.unlock();
  if (ended)
    thread_.join();
  else
    thread_.detach();
  return ended;
}

Watcher::News Watcher::take() {
  const std::lock_guard lock(shared_->mutex);
  return std::exchange(shared_->news, {});
}

void Watcher::set(std::chrono::milliseconds interval, bool paused) {
  const std::lock_guard lock(shared_->mutex);
  shared_->interval = interval;
  shared_->paused = paused;
  shared_->changed.notify_all();
}

void Watcher::stop(const std::string& task, bool force) {
  const std::lock_guard lock(shared_->mutex);
  shared_->stops.emplace_back(task, force);
  shared_->changed.notify_all();
}

void Watcher::run(const std::shared_ptr<Shared>& shared) {
  auto looked_at = steady_clock::time_point::min();
  std::chrono::nanoseconds rest{0};  // until a look may follow another
  std::unique_lock lock(shared->mutex);
  const auto due_at = [&] { return looked_at + std::max<steady_clock::duration>(shared->interval, rest); };
  while (!shared->ending) {
    if (!shared->stops.empty()) {
      const auto [task, force] = shared->stops.front();
      shared->stops.pop_front();
      lock.unlock();
      auto message = shared->source.stop(task, force);
      lock.lock();
      shared->news.message = std::move(message);
      looked_at = steady_clock::time_point::min();  // what came of it is seen at once
      shared->tell();
    } else if (looked_at == steady_clock::time_point::min() ||
               (!shared->paused && steady_clock::now() >= due_at())) {
      looked_at = steady_clock::now();
      lock.unlock();
      const auto before = processor_time();
      auto snapshot = look_at(shared->source);
      rest = (processor_time() - before) * kShareOfTime;
      lock.lock();
      shared->news.trouble = snapshot ? "" : snapshot.error().message;
      if (snapshot) shared->news.snapshot = std::move(*snapshot);
      shared->tell();
    } else if (shared->paused) {
      shared->changed.wait(lock);
    } else {
      shared->changed.wait_until(lock, due_at());
    }
  }
  shared->ended = true;
  shared->changed.notify_all();
}

}  // namespace drover::cli::top
