#pragma once

// For operations of Asio of which a failure is an answer: co_await gives the error and the value, and does
// not throw.

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace drover {

inline constexpr auto kAsTuple = boost::asio::as_tuple(boost::asio::use_awaitable);

}  // namespace drover
