#pragma once

// Server-sent events (WHATWG HTML, "server-sent events"): how live answers are framed. Pure.

#include <string>
#include <string_view>

namespace drover::api {

/// One event. `id` comes back as `Last-Event-ID` when a client resumes; "" leaves it out. Line breaks in
/// `data` are kept.
std::string sse_event(std::string_view name, std::string_view id, std::string_view data);
/// A comment: tells both ends that the connection still stands.
std::string sse_heartbeat();

}  // namespace drover::api
