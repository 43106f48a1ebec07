#pragma once

// Waits for something to happen in a folder: a kubelet that has just started admits pods at once, and rejects
// for good those that want devices which no plugin has registered yet.

#include <chrono>
#include <string>

#include "base/fd.h"

namespace drover::kube {

/// One thread waits; any may wake it. Where the kernel cannot watch, only time passes.
class FolderWatch {
 public:
  explicit FolderWatch(std::string folder);

  /// Returns as soon as a file was made or removed there since the last call, or wake() was called; otherwise
  /// after `patience`. Also of a folder that is made only later, from the next call on.
  void wait(std::chrono::milliseconds patience);
  void wake() const;

 private:
  void watch() const;

  std::string folder_;
  UniqueFd inotify_, wake_;
};

}  // namespace drover::kube
