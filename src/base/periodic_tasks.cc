#include "base/periodic_tasks.h"

#include <fmt/format.h>

#include <atomic>
#include <stop_token>
#include <utility>

#include "base/pause.h"
#include "base/units.h"

namespace drover {

struct PeriodicTasks::One {
  explicit One(std::string name) : what(std::move(name)) {}

  std::string what;
  std::atomic<Clock::time_point> since{};  ///< of the call that is under way; the epoch between calls
  std::jthread thread;
};

PeriodicTasks::PeriodicTasks() = default;

PeriodicTasks::~PeriodicTasks() {
  end();
}

void PeriodicTasks::add(std::string what, std::chrono::milliseconds pause_between,
                        std::function<void()> task) {
  auto one = std::make_unique<One>(std::move(what));
  one->thread =
      std::jthread([raw = one.get(), pause_between, task = std::move(task)](const std::stop_token& stop) {
        do {
          raw->since = Clock::now();
          task();
          raw->since = Clock::time_point{};
        } while (pause(pause_between, stop));
      });
  const std::lock_guard lock(mutex_);
  all_.push_back(std::move(one));
}

Status PeriodicTasks::check(std::chrono::milliseconds patience) const {
  const auto now = Clock::now();
  const std::lock_guard lock(mutex_);
  for (const auto& one : all_) {
    const auto since = one->since.load();
    if (since == Clock::time_point{} || now - since <= patience) continue;
    const auto taken = std::chrono::floor<std::chrono::seconds>(now - since);
    return fail(ErrorKind::kTimeout,
                fmt::format("{} has taken {} and may never end", one->what, format_duration(taken)));
  }
  return {};
}

void PeriodicTasks::end() {
  std::vector<std::unique_ptr<One>> ending;
  {
    const std::lock_guard lock(mutex_);
    ending.swap(all_);
  }
  for (const auto& one : ending) one->thread.request_stop();
  ending.clear();
}

}  // namespace drover
