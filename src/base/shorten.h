#pragma once

// Long texts in messages: what quotes a value must not grow with it.

#include <cstddef>
#include <string>

namespace drover {

/// Without its middle when it is longer than so many bytes. UTF-8 stays UTF-8.
std::string shortened(std::string text, std::size_t longest = 400);

}  // namespace drover
