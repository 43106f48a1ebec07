#pragma once

// Ids that follow from numbers or from content, for code that has no randomness of its own. Pure.

#include <cstdint>
#include <string>
#include <string_view>

namespace drover {

/// Two numbers as one that looks random (the finaliser of splitmix64).
std::uint64_t mix(std::uint64_t a, std::uint64_t b);

/// "6fcb514b-b878-4c9d-95b7-8dc3a7ce6fd8": of version 4 (RFC 9562), from 128 bits.
std::string uuid_of(std::uint64_t high, std::uint64_t low);
/// One that follows from `name`: the same always.
std::string uuid_named(std::string_view name);

/// The SHA-256 of the text, as 64 hex digits.
std::string sha256_hex(std::string_view text);

}  // namespace drover
