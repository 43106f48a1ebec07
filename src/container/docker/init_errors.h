#pragma once

// What drover-init says when it cannot start the command of a container: a sentence, alone on standard error,
// since an engine has no other way out for it. It is kept from the task's output until it is known to be
// that. Not thread safe.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace drover::container::docker {

class InitErrors {
 public:
  /// Output of the container (0: standard output, 1: standard error). Returns what of that stream is output
  /// of the task's command for certain.
  std::string pass(std::size_t stream, std::string_view bytes);
  /// What is still withheld, all of it from standard error; to be asked once the container has ended.
  std::string rest() { return std::exchange(withheld_, {}); }
  /// Why the command was not started, if that is what the withheld sentence and the exit status say.
  std::optional<Error> failure(int exit_status) const;

 private:
  std::string withheld_;
  bool passing_ = false;  ///< the command has started
};

}  // namespace drover::container::docker
