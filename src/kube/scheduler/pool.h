#pragma once

// Equal values kept once in memory, for as long as somebody holds them. One thread at a time.

#include <algorithm>
#include <cstddef>
#include <memory>
#include <set>
#include <utility>

namespace drover::kube::scheduler {

template <typename T>
class Pool {
 public:
  using Pointer = std::shared_ptr<const T>;

  /// The value in the pool that equals this one: itself, when there is none.
  Pointer share(Pointer value) {
    if (const auto found = values_.find(value); found != values_.end()) return *found;
    if (values_.size() >= sweep_at_) sweep();
    return *values_.insert(std::move(value)).first;
  }

  auto begin() const { return values_.begin(); }
  auto end() const { return values_.end(); }
  std::size_t size() const { return values_.size(); }

 private:
  struct Less {
    bool operator()(const Pointer& one, const Pointer& other) const { return *one < *other; }
  };

  void sweep() {
    std::erase_if(values_, [](const Pointer& value) { return value.use_count() == 1; });
    sweep_at_ = std::max<std::size_t>(kLeast, values_.size() * 2);
  }

  static constexpr std::size_t kLeast = 64;
  std::set<Pointer, Less> values_;
  std::size_t sweep_at_ = kLeast;
};

}  // namespace drover::kube::scheduler
