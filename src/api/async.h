#pragma once

// Bridges between coroutines and the two other ways in which things finish: callbacks and blocking calls.

#include <boost/asio/async_result.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <exception>
#include <functional>
#include <memory>
#include <utility>

#include "base/as_tuple.h"
#include "base/fair_pool.h"
#include "base/result.h"

namespace drover::api {

/// Runs `function`, which returns a Result, on the pool, as work of `key`; the coroutine goes on where it
/// was. kUnavailable when too much of that key waits already. A cancelled coroutine still waits for it:
/// cancellation must not reach into the other thread.
template <typename Function, typename T = std::invoke_result_t<Function>>
boost::asio::awaitable<T> on_pool(FairPool& pool, FairPool::Key key, Function function) {
  auto initiate = [&pool, key, function = std::move(function)](auto handler) mutable {
    auto executor = boost::asio::get_associated_executor(handler);
    auto shared = std::make_shared<decltype(handler)>(std::move(handler));
    const auto answer = [shared, executor](std::exception_ptr failure, T value) {
      boost::asio::post(executor, [shared, failure, value = std::move(value)]() mutable {
        (*shared)(failure, std::move(value));
      });
    };
    auto work = boost::asio::make_work_guard(executor);
    const auto own = std::make_shared<Function>(std::move(function));
    const bool taken = pool.post(key, [answer, own, work = std::move(work)] {
      std::exception_ptr failure;
      T value{};
      try {
        value = (*own)();
      } catch (...) {
        failure = std::current_exception();
      }
      answer(failure, std::move(value));
    });
    if (!taken)
      answer(nullptr, fail(ErrorKind::kUnavailable, "Too many requests of yours wait already",
                           "let some finish, and try again"));
  };
  co_return co_await boost::asio::async_initiate<const boost::asio::use_awaitable_t<>,
                                                 void(std::exception_ptr, T)>(std::move(initiate),
                                                                              boost::asio::use_awaitable);
}

/// Starts something that answers through a callback, on this strand, now or later, at most once.
template <typename T>
boost::asio::awaitable<T> callback_result(std::function<void(std::function<void(T)>)> start) {
  auto initiate = [start = std::move(start)](auto handler) {
    auto shared = std::make_shared<decltype(handler)>(std::move(handler));
    start([shared](T value) {
      boost::asio::post(boost::asio::get_associated_executor(*shared),
                        [shared, value = std::move(value)]() mutable { (*shared)(std::move(value)); });
    });
  };
  co_return co_await boost::asio::async_initiate<const boost::asio::use_awaitable_t<>, void(T)>(
      std::move(initiate), boost::asio::use_awaitable);
}

}  // namespace drover::api

/// DROVER_TRY and DROVER_CHECK_OK for coroutines.
#define DROVER_CO_TRY(lhs, ...) DROVER_CO_TRY_AS(DROVER_CONCAT(drover_try_, __LINE__), lhs, __VA_ARGS__)
#define DROVER_CO_TRY_AS(temporary, lhs, ...)                                \
  auto temporary = (__VA_ARGS__);                                            \
  if (!temporary) co_return ::drover::Failure(std::move(temporary).error()); \
  lhs = std::move(*temporary)

#define DROVER_CO_CHECK_OK(...)                                      \
  do {                                                               \
    if (auto drover_status = (__VA_ARGS__); !drover_status)          \
      co_return ::drover::Failure(std::move(drover_status).error()); \
  } while (false)
