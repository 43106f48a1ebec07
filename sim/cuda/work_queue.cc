#include "sim/cuda/work_queue.h"

#include <signal.h>
#include <sys/prctl.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

namespace drover::sim::cuda {
namespace {

thread_local const WorkQueue* this_threads_queue = nullptr;

void sleep_until(std::uint64_t ns) {
  const struct timespec at{static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
  while (::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, nullptr) == EINTR) continue;
}

}  // namespace

WorkQueue::Ticket WorkQueue::spin(std::uint64_t ns) {
  const std::scoped_lock lock(mutex_);
  // What takes no time ends with what is before it, and needs no place of its own.
  if (ns == 0) return given_;
  return push({monotonic_ns(), ns, nullptr});
}

WorkQueue::Ticket WorkQueue::run(Action action) {
  std::unique_lock lock(mutex_);
  if (!queue_.empty() || acting_) return push({monotonic_ns(), 0, std::move(action)});
  const auto ticket = ++given_;
  acting_ = true;
  const auto now = std::max(monotonic_ns(), ended_ns_);
  lock.unlock();
  action(now);
  lock.lock();
  acting_ = false;
  done_ = ticket;
  changed_.notify_all();
  return ticket;
}

WorkQueue::Ticket WorkQueue::run_elsewhere(Action action) {
  const std::scoped_lock lock(mutex_);
  return push({monotonic_ns(), 0, std::move(action)});
}

WorkQueue::Ticket WorkQueue::last() const {
  const std::scoped_lock lock(mutex_);
  return given_;
}

bool WorkQueue::done(Ticket ticket) const {
  const std::scoped_lock lock(mutex_);
  return done_ >= ticket;
}

void WorkQueue::wait(Ticket ticket) {
  std::unique_lock lock(mutex_);
  if (on_own_thread()) return;  // an action that waits for its own queue would never end
  changed_.wait(lock, [&] { return done_ >= ticket; });
}

bool WorkQueue::on_own_thread() const {
  return this_threads_queue == this;
}

void WorkQueue::stop() {
  {
    const std::scoped_lock lock(mutex_);
    if (!started_ || stopping_) return;
    stopping_ = true;
    changed_.notify_all();
  }
  if (on_own_thread())
    ::pthread_detach(thread_);
  else
    ::pthread_join(thread_, nullptr);
  const std::scoped_lock lock(mutex_);
  started_ = stopping_ = false;
}

WorkQueue::Ticket WorkQueue::push(Work work) {
  if (!started_) start();
  queue_.push_back(std::move(work));
  changed_.notify_all();
  return ++given_;
}

void WorkQueue::start() {
  // Signals are for the client's own threads.
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  const auto body = [](void* self) -> void* {
    static_cast<WorkQueue*>(self)->work();
    return nullptr;
  };
  const int error = ::pthread_create(&thread_, nullptr, body, this);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (error != 0) throw std::system_error(error, std::generic_category(), "Failed to start a thread");
  started_ = true;
}

void WorkQueue::work() {
  this_threads_queue = this;
  ::prctl(PR_SET_TIMERSLACK, 1);
  ::prctl(PR_SET_NAME, "cuda-work");
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return (!queue_.empty() && !acting_) || (queue_.empty() && stopping_); });
    if (queue_.empty()) return;
    auto& front = queue_.front();
    if (!front.action) {
      take_turn(lock);
      continue;
    }
    const auto action = std::move(front.action);
    const auto at = std::max(ended_ns_, front.submitted_ns);
    lock.unlock();
    action(at);
    lock.lock();
    finish_front();
  }
}

// One turn is for as much as waits, so that many short kernels get as much of the GPU as one that is long.
void WorkQueue::take_turn(std::unique_lock<std::mutex>& lock) {
  std::uint64_t wanted = 0;
  for (auto work = queue_.begin(); work != queue_.end() && !work->action && wanted < kTurnNs; ++work)
    wanted += work->spin_ns;
  const auto ready = std::max(ended_ns_, queue_.front().submitted_ns);
  const auto turn = live_->take_turn(gpu_, ready, wanted);
  auto at = turn.start_ns;
  while (at < turn.end_ns) {
    auto& front = queue_.front();
    const auto part = std::min(front.spin_ns, turn.end_ns - at);
    at += part;
    lock.unlock();
    sleep_until(at);
    lock.lock();
    front.spin_ns -= part;  // a deque's elements stay where they are while others are added
    ended_ns_ = at;
    if (front.spin_ns == 0) finish_front();
  }
  live_->add_busy(gpu_, turn);
}

void WorkQueue::finish_front() {
  queue_.pop_front();
  ++done_;
  changed_.notify_all();
}

}  // namespace drover::sim::cuda
