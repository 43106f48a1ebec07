#pragma once

// Server-sent events (WHATWG HTML, "server-sent events"): how live answers are framed. Pure.

#include <chrono>
#include <string>
#include <string_view>

namespace drover::api {

/// One event. `id` comes back as `Last-Event-ID` when a client resumes; "" leaves it out. Line breaks in
/// `data` are kept.
std::string sse_event(std::string_view name, std::string_view id, std::string_view data);
/// After so long without an event comes a comment. Marathon's rate, too: clients of its events give a stream
/// up that is silent for 15 s.
inline constexpr std::chrono::seconds kSseHeartbeat{10};
/// A comment: tells both ends that the connection still stands.
std::string sse_heartbeat();

}  // namespace drover::api
