#pragma once

// Which devices are selected by an expression: each is compiled once, and asked once about devices that are
// alike. It keeps no more than some hundred expressions, since anybody may write new ones. One thread at a
// time.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "base/result.h"
#include "cel/selector.h"
#include "kube/scheduler/claims/slice.h"

namespace drover::kube::scheduler {

class Selectors {
 public:
  class Compiled;
  using Handle = std::shared_ptr<const Compiled>;

  Handle compiled(const std::string& expression);
  /// The errors are those of cel::Selector: they end the whole allocation.
  Result<bool> matches(const Compiled& selector, const DeviceKind& kind);

  std::size_t evaluations() const { return evaluations_; }

 private:
  std::map<std::string, Handle, std::less<>> compiled_;
  std::uint64_t epoch_ = 1;  ///< of the numbers of expressions
  std::size_t evaluations_ = 0;
};

}  // namespace drover::kube::scheduler
