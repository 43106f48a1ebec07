#include "base/fair_pool.h"

#include <system_error>
#include <utility>

namespace drover {

FairPool::~FairPool() {
  stop();
}

void FairPool::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  ready_.notify_all();
  for (auto& thread : threads_) thread.join();
  threads_.clear();
  shares_.clear();
}

bool FairPool::start_thread() {
  try {
    threads_.emplace_back([this] { run(); });
  } catch (const std::system_error&) {
    return false;  // those that there are will come to it
  }
  ++idle_;
  return true;
}

void FairPool::line_up(Key key, Share& share) {
  if (stopping_ || share.in_turn || share.waiting.empty() || share.running >= limits_.at_once) return;
  share.in_turn = true;
  turns_.push_back(key);
  if (turns_.size() > idle_ && threads_.size() < limits_.threads) start_thread();
  ready_.notify_one();
}

bool FairPool::post(Key key, Work work) {
  const std::lock_guard lock(mutex_);
  auto& share = shares_[key];
  const bool welcome =
      !stopping_ && share.waiting.size() < limits_.waiting && (!threads_.empty() || start_thread());
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

FairPool::Totals FairPool::totals() const {
  const std::lock_guard lock(mutex_);
  Totals totals;
  for (const auto& [key, share] : shares_) {
    totals.running += share.running;
    totals.waiting += share.waiting.size();
  }
  return totals;
}

void FairPool::run() {
  std::unique_lock lock(mutex_);
  while (true) {
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
    ++idle_;
    --share.running;
    line_up(key, share);
    if (share.running == 0 && share.waiting.empty()) shares_.erase(key);
  }
}

}  // namespace drover
