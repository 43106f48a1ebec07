#pragma once

// UUIDs as text and as the 16 bytes that the Mesos API sends. Pure.

#include <optional>
#include <string>
#include <string_view>

namespace drover::api::mesos {

/// "6fcb514b-…" → 16 bytes; nullopt when it is no UUID.
std::optional<std::string> uuid_bytes(std::string_view text);
/// 16 bytes → text.
std::string uuid_text(std::string_view bytes);

}  // namespace drover::api::mesos
