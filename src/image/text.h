#pragma once

// Text of an image in our messages. Pure.

#include <string>
#include <string_view>

namespace drover::image {

/// Fit for a message: at most 200 bytes, and everything but printable ASCII as \xNN, so that a hostile name
/// neither drives a terminal nor breaks the JSON that carries the message.
std::string printable(std::string_view raw);

}  // namespace drover::image
