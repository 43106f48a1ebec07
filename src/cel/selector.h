#pragma once

// The selectors of Kubernetes' device classes and claims: which devices they take. Answers as kube-scheduler
// does, which links cel-go: what is no CEL is refused, and so is, by name, what is not known here.
// Nothing is guessed. Pure; one selector may be asked by several threads.

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/quantity.h"
#include "base/result.h"

namespace drover::cel {

struct Expression;

/// A semantic version, as it is published.
struct Version {
  std::string text;

  auto operator<=>(const Version&) const = default;
};

using Attribute = std::variant<std::int64_t, bool, std::string, Version, std::vector<std::int64_t>,
                               std::vector<bool>, std::vector<std::string>, std::vector<Version>>;

/// A device of a ResourceSlice. Names are "domain/name", or "name" in the domain of the driver.
struct Device {
  std::string driver;
  std::map<std::string, Attribute> attributes;
  std::map<std::string, Quantity> capacity;
  bool allow_multiple_allocations = false;
};

class Selector {
 public:
  /// kInvalid for what is no CEL, or longer than 10 KiB. kUnsupported for what is not known here: a function,
  /// a message, too much of anything.
  static Result<Selector> compile(std::string_view text);

  /// An error is none of "no": Kubernetes gives up the whole allocation, and so must who asks. kExhausted for
  /// what takes too much work, kUnsupported for values that cannot be calculated with here.
  Result<bool> matches(const Device& device) const;

 private:
  explicit Selector(std::shared_ptr<const Expression> root) : root_(std::move(root)) {}

  std::shared_ptr<const Expression> root_;
};

}  // namespace drover::cel
