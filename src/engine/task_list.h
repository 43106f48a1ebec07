#pragma once

// The tasks that one caller may see, as they were at one moment. May be read on any thread.

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/users.h"
#include "control/state.h"

namespace drover::engine {

/// Who asks. Root may do everything; others see, stop and read only what they own.
struct Caller {
  User user;
  bool is_root() const { return user.uid == 0; }
};

/// What is being done for tasks, in words, by their ids: shown as the reason of their state.
using Doings = std::map<std::string, std::string>;

/// As people see it: with the reason why it waits, or what is being done for it.
control::TaskRecord shown(const control::State& state, const control::TaskRecord& record,
                          const Doings& doings);

class TaskList {
 public:
  TaskList(std::shared_ptr<const control::State> state, Caller caller, Doings doings)
      : state_(std::move(state)), caller_(std::move(caller)), doings_(std::move(doings)) {}

  /// There are not more than so many.
  std::size_t most() const { return state_->tasks.size(); }
  /// Calls visit(record) for each, the oldest first.
  void each(const std::function<void(const control::TaskRecord&)>& visit) const;
  std::vector<control::TaskRecord> records() const;

 private:
  std::shared_ptr<const control::State> state_;
  Caller caller_;
  Doings doings_;
};

}  // namespace drover::engine
