#pragma once

// Objects that clients hold by handles of the C interface, which are their addresses and may be anything.
// Thread safe.

#include <memory>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

namespace drover::sim::cuda {

template <typename Object, typename Handle>
class Handles {
 public:
  Handle add(std::shared_ptr<Object> object) {
    const auto handle = to_handle(object.get());
    const std::scoped_lock lock(mutex_);
    objects_.emplace(handle, std::move(object));
    return handle;
  }
  static Handle to_handle(Object* object) { return reinterpret_cast<Handle>(object); }

  /// Null when there is none.
  std::shared_ptr<Object> find(Handle handle) const {
    const std::shared_lock lock(mutex_);
    const auto found = objects_.find(handle);
    return found == objects_.end() ? nullptr : found->second;
  }
  /// Takes it out; null when there is none.
  std::shared_ptr<Object> remove(Handle handle) {
    const std::scoped_lock lock(mutex_);
    const auto found = objects_.find(handle);
    if (found == objects_.end()) return nullptr;
    auto object = std::move(found->second);
    objects_.erase(found);
    return object;
  }
  template <typename Predicate>
  void remove_if(Predicate predicate) {
    const std::scoped_lock lock(mutex_);
    std::erase_if(objects_, [&](auto& entry) { return predicate(*entry.second); });
  }
  template <typename Visit>
  void for_each(Visit visit) const {
    const std::shared_lock lock(mutex_);
    for (const auto& [handle, object] : objects_) visit(*object);
  }

 private:
  mutable std::shared_mutex mutex_;
  std::unordered_map<Handle, std::shared_ptr<Object>> objects_;
};

}  // namespace drover::sim::cuda
