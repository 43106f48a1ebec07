#pragma once

// Handlers that change the state: in a transaction, so that what they have read is still so when they change
// it, and their answers are given when all of it is on the disk.

#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "api/async.h"
#include "api/router.h"

namespace drover::api {

/// What `run` returns in a transaction (engine::Api::transact), once that is kept; the Error when it
/// cannot be. `run` returns a Result, and may be called several times.
template <typename Run, typename T = std::invoke_result_t<Run&>>
boost::asio::awaitable<T> in_transaction(engine::Api& daemon, Run run) {
  auto result = std::make_shared<std::optional<T>>();
  const auto start = [&](std::function<void(Status)> done) {
    daemon.transact([run = std::make_shared<Run>(std::move(run)), result] { *result = (*run)(); },
                    std::move(done));
  };
  if (auto kept = co_await callback_result<Status>(start); !kept) co_return Failure(std::move(kept).error());
  co_return std::move(**result);
}

/// Makes a Handler of a function that changes the state and answers.
template <Result<Response> (*function)(const Services&, const Request&)>
boost::asio::awaitable<Result<Response>> changing(const Services& services, const Request& request) {
  co_return co_await in_transaction(*services.daemon, [&] { return function(services, request); });
}

}  // namespace drover::api
