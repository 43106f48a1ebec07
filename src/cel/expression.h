#pragma once

// Expressions as trees. Macros are gone: what goes over lists and maps is a fold. The checker fills in the
// types and which functions are meant.

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cel/value.h"

namespace re2 {
class RE2;
}

namespace drover::cel {

struct Type;
using TypePointer = std::shared_ptr<const Type>;
struct Overload;

struct Expression;
using Node = std::shared_ptr<Expression>;  ///< a macro may use what it was given twice

struct Expression {
  enum class Kind {
    kLiteral,
    kName,
    kSelect,    ///< operand . name
    kPresent,   ///< has(operand . name)
    kOptional,  ///< operand .? name
    kCall,      ///< of a function; `member`: the first argument stands before the point
    kAnd,
    kOr,
    kChoice,  ///< condition ? this : that
    kList,
    kMap,  ///< keys and values in turn
    kFold
  };
  /// A fold goes over its first argument. Its accumulator begins as the second one, when it is first asked
  /// for; while the third is not false, it becomes the fourth; the fifth is the result.
  enum FoldPart { kRange, kStart, kCondition, kStep, kResult };

  Kind kind = Kind::kLiteral;
  std::size_t place = 0;  ///< in the text
  std::string name;       ///< of a function, a field, or the accumulator of a fold
  bool member = false;
  std::vector<Node> arguments;
  std::vector<bool> optional;       ///< which elements of a list or map are given only if they are there
  std::string variable, variable2;  ///< of a fold
  Value value;
  std::size_t height = 1;

  TypePointer type;
  std::vector<const Overload*> overloads;
  std::shared_ptr<const re2::RE2> pattern;  ///< where it is written in the text
};

}  // namespace drover::cel
