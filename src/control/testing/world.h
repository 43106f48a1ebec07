#pragma once

// What those who play a part in a simulation see of it: the time, chance, and the daemon that they use.

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "control/controller.h"

namespace drover::control::testing {

class World {
 public:
  World() = default;
  World(const World&) = delete;
  World& operator=(const World&) = delete;
  virtual ~World() = default;

  virtual TimePoint now() const = 0;
  /// Null while the daemon is away.
  virtual const State* state() const = 0;
  /// Since when the daemon is there.
  virtual TimePoint up_since() const = 0;
  /// Whether the daemon answered that it did so. When it was killed instead, it may have done so or not.
  virtual bool process(const Event& event) = 0;
  virtual void later(std::chrono::milliseconds delay, std::function<void()> what) = 0;
  virtual std::int64_t any(std::int64_t least, std::int64_t most) = 0;
  /// Of trouble and new wishes: once it is calm, none happen.
  virtual bool happens(int in_thousand) = 0;
  virtual bool calm() const = 0;
  /// The first that does not hold is what is wrong.
  virtual void expect(bool holds, const std::function<std::string()>& what) = 0;

  std::chrono::milliseconds any_time(std::chrono::milliseconds least, std::chrono::milliseconds most) {
    return std::chrono::milliseconds(any(least.count(), most.count()));
  }
  template <typename T>
  const T& any_of(const std::vector<T>& choices) {
    return choices.at(static_cast<std::size_t>(any(0, static_cast<std::int64_t>(choices.size()) - 1)));
  }
};

}  // namespace drover::control::testing
