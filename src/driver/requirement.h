#pragma once

// The conditions that CUDA images make in NVIDIA_REQUIRE_…, in the language of libnvidia-container
// (src/cli/dsl.c):
//
//   cuda>=12.2 brand=tesla,driver>=470,driver<471 brand=grid,driver>=525
//
// A space is "or", a comma is "and". Names are cuda, driver, arch (compute capability) and brand, in any
// case; operators = != < <= > >=, of which brand has the first two. What a machine does not tell is taken to
// be met. Pure.

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace drover::driver {

/// What conditions are held against: one GPU and its driver. "" is not known.
struct RequirementFacts {
  std::string cuda;
  std::string driver;
  std::string arch;   ///< "7.0"
  std::string brand;  ///< "tesla"
};

class Requirement {
 public:
  /// All of it is read, also what would not be looked at. kInvalid names the part that is not understood.
  static Result<Requirement> parse(std::string_view text);

  bool met_by(const RequirementFacts& facts) const;
  bool empty() const { return alternatives_.empty(); }

 private:
  enum class Operator { kEqual, kNotEqual, kLess, kLessEqual, kGreater, kGreaterEqual };
  struct Condition {
    std::string RequirementFacts::* fact;
    Operator comparison;
    std::string value;
  };
  static Result<Condition> parse_condition(std::string_view text);
  static bool holds(const Condition& condition, const RequirementFacts& facts);

  std::vector<std::vector<Condition>> alternatives_;
};

}  // namespace drover::driver
