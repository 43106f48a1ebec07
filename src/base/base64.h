#pragma once

// Base64 (RFC 4648, with padding): for Basic credentials and for file content that is no text. Pure.

#include <optional>
#include <string>
#include <string_view>

namespace drover {

std::string encode_base64(std::string_view bytes);
/// nullopt when `text` is not base64.
std::optional<std::string> decode_base64(std::string_view text);

}  // namespace drover
