#pragma once

// Decoding of base64 as the daemon sends it (RFC 4648, with padding). Pure.

#include <string>
#include <string_view>

namespace drover::cli {

/// Stops at the first character that is not base64.
std::string decode_base64(std::string_view text);

}  // namespace drover::cli
