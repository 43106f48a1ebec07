#pragma once

// Handlers that change the state: in a transaction, so that what they have read is still so when they change
// it, and their answers are given when all of it is on the disk.

#include <exception>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "api/async.h"
#include "api/router.h"

namespace drover::api {

/// What `run` returns in a transaction (engine::Decisions::transact), once that is kept; the Error when it
/// cannot be. `run` returns a Result, and may be called several times. What it throws is thrown here.
template <typename Run, typename T = std::invoke_result_t<Run&>>
boost::asio::awaitable<T> in_transaction(engine::Decisions& daemon, Run run) {
  struct Answer {
    std::optional<T> result;
    std::exception_ptr failure;
  };
  const auto answer = std::make_shared<Answer>();
  const auto start = [&](std::function<void(Status)> done) {
    daemon.transact(
        [run = std::make_shared<Run>(std::move(run)), answer] {
          try {
            answer->result = (*run)();
          } catch (...) {
            answer->failure = std::current_exception();
          }
        },
        std::move(done));
  };
  auto kept = co_await callback_result<Status>(start);
  if (answer->failure) std::rethrow_exception(answer->failure);
  if (!kept) co_return Failure(std::move(kept).error());
  co_return std::move(*answer->result);
}

/// Makes a Handler of a function that changes the state and answers.
template <Result<Response> (*function)(const Services&, const Request&)>
boost::asio::awaitable<Result<Response>> changing(const Services& services, const Request& request) {
  co_return co_await in_transaction(*services.decisions, [&] { return function(services, request); });
}

}  // namespace drover::api
