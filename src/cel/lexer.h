#pragma once

// Cuts the text of an expression into tokens, and reads its literals. Pure.

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cel/value.h"

namespace drover::cel {

struct Token {
  enum class Kind { kEnd, kName, kLiteral, kNumber, kSymbol } kind = Kind::kEnd;
  std::string_view text;  ///< numbers are not read yet: a minus may belong to them
  std::size_t place = 0;
  Value value;
};

/// "the selector is no CEL: …, in character 12".
Failure no_cel(std::string_view what, std::size_t place);

/// The last one is kEnd.
Result<std::vector<Token>> tokens_of(std::string_view text);
Result<Value> number_of(std::string_view text, bool negative, std::size_t place);

}  // namespace drover::cel
