#include "base/fair_pool.h"

#include <system_error>
#include <utility>

namespace drover {

FairPool::~FairPool() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  ready_.notify_all();
  for (auto& thread : threads_) thread.join();
}

bool FairPool::has_thread() {
  if (turns_.size() < idle_ || threads_.size() >= limits_.threads) return true;
  try {
    threads_.emplace_back([this] { run(); });
  } catch (const std::system_error&) {
    return !threads_.empty();  // those that there are will come to it
  }
  return true;
}

void FairPool::line_up(Key key, Share& share) {
  if (share.in_turn || share.waiting.empty() || share.running >= limits_.at_once) return;
  share.in_turn = true;
  turns_.push_back(key);
  ready_.notify_one();
}

bool FairPool::post(Key key, Work work) {
  const std::lock_guard lock(mutex_);
  auto& share = shares_[key];
  const bool welcome = !stopping_ && share.waiting.size() < limits_.waiting && has_thread();
  if (welcome) {
    share.waiting.push_back(std::move(work));
    line_up(key, share);
  } else if (share.waiting.empty() && share.running == 0) {
    shares_.erase(key);
  }
  return welcome;
}

std::size_t FairPool::load(Key key) const {
  const std::lock_guard lock(mutex_);
  const auto share = shares_.find(key);
  return share == shares_.end() ? 0 : share->second.waiting.size() + share->second.running;
}

void FairPool::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    ++idle_;
    ready_.wait(lock, [this] { return stopping_ || !turns_.empty(); });
    --idle_;
    if (stopping_) return;
    const auto key = turns_.front();
    turns_.pop_front();
    auto& share = shares_.at(key);  // stays where it is as long as something of it runs
    share.in_turn = false;
    auto work = std::move(share.waiting.front());
    share.waiting.pop_front();
    ++share.running;
    line_up(key, share);
    lock.unlock();
    work();
    work = nullptr;  // what it holds may block, too
    lock.lock();
    --share.running;
    line_up(key, share);
    if (share.running == 0 && share.waiting.empty()) shares_.erase(key);
  }
}

}  // namespace drover
