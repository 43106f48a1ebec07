#pragma once

// What is wrong is told when it is new, and not again each time that it is found. Not thread safe.

#include <functional>
#include <string>
#include <utility>

#include "base/result.h"

namespace drover {

class Complaint {
 public:
  /// `tell` may be absent.
  explicit Complaint(std::function<void(const std::string& sentence)> tell) : tell_(std::move(tell)) {}

  /// What an attempt came to. After a success everything is new again.
  void tell(const Status& status) {
    auto text = status ? "" : to_string(status.error());
    if (!text.empty() && text != told_ && tell_) tell_(text);
    told_ = std::move(text);
  }

 private:
  std::function<void(const std::string&)> tell_;
  std::string told_;
};

}  // namespace drover
