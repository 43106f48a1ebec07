#pragma once

// What is wrong is told when it is new, and not again each time that it is found. Not thread safe.

#include <functional>
#include <string>
#include <utility>

#include "base/result.h"

namespace drover {

class LogOnce {
 public:
  /// `log` may be absent.
  explicit LogOnce(std::function<void(const std::string& sentence)> log) : log_(std::move(log)) {}

  /// What an attempt came to. After a success everything is new again.
  void report(const Status& status) {
    auto text = status ? "" : to_string(status.error());
    if (!text.empty() && text != reported_ && log_) log_(text);
    reported_ = std::move(text);
  }

 private:
  std::function<void(const std::string&)> log_;
  std::string reported_;
};

}  // namespace drover
