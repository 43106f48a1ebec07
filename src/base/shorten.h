#pragma once

// Long texts in messages: what quotes a value must not grow with it.

#include <string>

namespace drover {

/// Without its middle when it is longer than some hundred bytes. UTF-8 stays UTF-8.
std::string shortened(std::string text);

}  // namespace drover
