#pragma once

// The floor under every answer: the same number of bytes, ready in memory, over a bare connection of
// loopback. No server can be faster than this on the machine.

#include <cstddef>
#include <vector>

namespace drover::bench {

/// Milliseconds of each of `rounds` times that so many bytes were asked for and read.
std::vector<double> time_bare_bytes(std::size_t bytes, int rounds);

}  // namespace drover::bench
