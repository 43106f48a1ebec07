#pragma once

// Values that copies share until one of them changes. Copies may live on different threads; one value may
// not be used by two at once.

#include <memory>
#include <utility>

namespace drover {

template <typename T>
class Cow {
 public:
  Cow() = default;
  explicit Cow(T value) : value_(std::make_shared<T>(std::move(value))) {}

  const T& operator*() const { return *value_; }
  const T* operator->() const { return value_.get(); }
  explicit operator bool() const { return value_ != nullptr; }

  /// The value, to be changed: a copy of it when it was shared.
  T& mutate() {
    if (value_.use_count() == 1)
      const std::shared_ptr<T> ordered = value_;  // dropped at once: after what the last other owner read
    else
      value_ = value_ ? std::make_shared<T>(*value_) : std::make_shared<T>();
    return *value_;
  }

 private:
  std::shared_ptr<T> value_;
};

}  // namespace drover
