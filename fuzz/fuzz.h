#pragma once

// What every fuzz target needs. A target defines LLVMFuzzerTestOneInput, gives the bytes to a decoder, and
// checks what must hold of whatever comes out.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace drover::fuzz {

inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

/// Stops the run: the input is kept as a failure.
inline void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace drover::fuzz
