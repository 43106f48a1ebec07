#pragma once

// The two languages of the Mesos APIs, and how a client asks for one. Pure.

#include <optional>
#include <string_view>

namespace drover::api::mesos {

enum class MediaType { kJson, kProtobuf };

/// "application/json" or "application/x-protobuf".
std::string_view to_string(MediaType type);

/// What a `Content-Type` header names; nullopt when it is neither.
std::optional<MediaType> media_type(std::string_view content_type);

/// What to answer with, by the `Accept` header ("" when there is none): JSON where that is allowed. nullopt
/// when neither is.
std::optional<MediaType> accepted_type(std::string_view accept);

}  // namespace drover::api::mesos
