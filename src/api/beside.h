#pragma once

// Long answers are written beside the control strand, so that nobody waits for somebody else's list. The
// handler takes on the strand what it needs, mostly a copy of the state (control/state.h), and gives back how
// the answer is written from it, on a thread of its own. A user has one list written at a time, and none
// while too much of what was written for him is not read (answer_shares.h).

#include <functional>

#include "api/router.h"

namespace drover::api {

/// Runs on another thread, once: of Services it uses only what never changes.
using Write = std::function<Result<Response>()>;

/// The answer. On the control strand; kUnavailable when the caller has too many answers already.
asio::awaitable<Result<Response>> write_beside(const Services& services, const engine::Caller& caller,
                                               Write write);

/// Makes a Handler of a function that says how its answer is written.
template <Result<Write> (*function)(const Services&, const Request&)>
asio::awaitable<Result<Response>> beside(const Services& services, const Request& request) {
  auto write = function(services, request);
  if (!write) co_return Failure(std::move(write).error());
  co_return co_await write_beside(services, *request.caller, std::move(*write));
}

}  // namespace drover::api
