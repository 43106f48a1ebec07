#pragma once

// Who follows a task's output hears at once that somebody has written to the task: what a terminal echoes
// is not waited for as long as other output. On the strand only.

#include <functional>
#include <map>
#include <memory>
#include <string>

namespace drover::api {

class Typing {
 public:
  /// Calls `listener` whenever something is written to that task, as long as what is returned lives.
  [[nodiscard]] std::shared_ptr<void> listen(const std::string& task, std::function<void()> listener) {
    const auto kept = listeners_->emplace(task, std::move(listener));
    // The followers of a connection may outlive us.
    return {static_cast<void*>(this), [all = listeners_, kept](void*) { all->erase(kept); }};
  }

  void typed(const std::string& task) const {
    const auto [begin, end] = listeners_->equal_range(task);
    for (auto each = begin; each != end; ++each) each->second();
  }

 private:
  using Listeners = std::multimap<std::string, std::function<void()>>;
  std::shared_ptr<Listeners> listeners_ = std::make_shared<Listeners>();
};

}  // namespace drover::api
