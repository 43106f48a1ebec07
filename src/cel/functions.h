#pragma once

// The functions and operators that selectors may call, by library. Pure, thread safe.

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cel/types.h"
#include "cel/value.h"

namespace drover::cel {

struct Call {
  Work& work;
  std::span<const Value> arguments;
  const re2::RE2* pattern = nullptr;  ///< the second argument, where it was known before
};
using Function = Value (*)(const Call&);

struct Overload {
  enum class Way {
    kGuarded,    ///< called where the arguments are of the types of its parameters, and none is an error
    kUnguarded,  ///< looks at the types itself
    kNotStrictlyFalse,
    kOr,
    kOrValue
  };
  bool member = false;
  std::vector<TypePointer> parameters;
  TypePointer result;
  Function run = nullptr;
  Way way = Way::kGuarded;
};

inline constexpr auto kUnguarded = Overload::Way::kUnguarded;

/// "name(int,A)->list<A>", or "string:name(…)" for what is called as `text.name(…)`; several of them behind
/// each other, with ';'. A '$' stands for each type that can be ordered.
struct Declaration {
  std::string_view signatures;
  Function run;
  Overload::Way way = Overload::Way::kGuarded;
};
std::span<const Declaration> standard_functions();
std::span<const Declaration> string_functions();
std::span<const Declaration> list_functions();
std::span<const Declaration> kubernetes_functions();

/// Null when there is none.
const std::vector<Overload>* find_function(std::string_view name);

/// A pattern of a selector, compiled: kInvalid for none, kUnsupported for what Go may take and RE2 does not.
Result<std::shared_ptr<const re2::RE2>> compiled_pattern(const std::string& pattern);

}  // namespace drover::cel
