#pragma once

// Who wants to hear of something. Owned by the control strand; a listener may come, leave or tell while it is
// called.

#include <algorithm>
#include <functional>
#include <memory>
#include <vector>

namespace drover::engine {

template <typename... Args>
class Listeners {
 public:
  using Listener = std::function<void(const Args&...)>;

  /// Until the returned handle dies.
  std::shared_ptr<void> add(Listener listener) {
    auto handle = std::make_shared<Listener>(std::move(listener));
    listeners_.push_back(handle);
    return handle;
  }

  void notify(const Args&... args) {
    const auto listeners = listeners_;
    for (const auto& weak : listeners)
      if (const auto listener = weak.lock()) (*listener)(args...);
    std::erase_if(listeners_, [](const auto& weak) { return weak.expired(); });
  }

 private:
  std::vector<std::weak_ptr<Listener>> listeners_;
};

}  // namespace drover::engine
