#include "kube/sandboxes/wire.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <cerrno>
#include <charconv>
#include <utility>

namespace drover::kube {
namespace {

namespace beast_http = boost::beast::http;

constexpr std::size_t kMostBody = 8 << 20;
constexpr std::size_t kReadAtOnce = 64 << 10;
constexpr const char* kSizeHeader = "Sandbox-Size";
constexpr const char* kInodeHeader = "Sandbox-Inode";

Status await(int fd, short events, Wire::Deadline deadline) {
  while (true) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd waits{fd, events, 0};
    const int found =
        left.count() <= 0 ? 0 : ::poll(&waits, 1, static_cast<int>(std::min<long>(left.count(), 60'000)));
    if (found > 0) return {};
    if (found < 0 && errno != EINTR) return fail_errno("Failed to wait for the node's agent", errno);
    if (left.count() <= 0) return fail(ErrorKind::kTimeout, "The node's agent does not answer in time");
  }
}

std::uint64_t read_number(std::string_view text) {
  std::uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

WireRequest read_message(const beast_http::request<beast_http::string_body>& message) {
  return {std::string(message.method_string()), std::string(message.target())};
}

WireAnswer read_message(const beast_http::response<beast_http::string_body>& message) {
  return {static_cast<int>(message.result_int()), message.body(), read_number(message[kSizeHeader]),
          read_number(message[kInodeHeader])};
}

Failure broken_wire(const std::string& why) {
  return fail(ErrorKind::kUnavailable, fmt::format("The connection to the node's agent broke: {}", why));
}

}  // namespace

Status Wire::write(std::string_view text, Deadline deadline) {
  while (!text.empty()) {
    const auto count = ::send(output_, text.data(), text.size(), MSG_NOSIGNAL);
    if (count > 0) {
      text.remove_prefix(static_cast<std::size_t>(count));
    } else if (errno == EAGAIN) {
      DROVER_CHECK_OK(await(output_, POLLOUT, deadline));
    } else if (errno != EINTR) {
      return broken_wire("nobody listens");
    }
  }
  return {};
}

Status Wire::send(const WireRequest& request, Deadline deadline) {
  return write(fmt::format("{} {} HTTP/1.1\r\nHost: node\r\n\r\n", request.method, request.target), deadline);
}

Status Wire::send(const WireAnswer& answer, Deadline deadline) {
  return write(
      fmt::format("HTTP/1.1 {} {}\r\nContent-Length: {}\r\n{}: {}\r\n{}: {}\r\n\r\n{}", answer.status,
                  std::string(beast_http::obsolete_reason(static_cast<beast_http::status>(answer.status))),
                  answer.body.size(), kSizeHeader, answer.size, kInodeHeader, answer.inode, answer.body),
      deadline);
}

template <bool kIsRequest, typename Message>
Result<Message> Wire::receive(Deadline deadline) {
  beast_http::parser<kIsRequest, beast_http::string_body> parser;
  parser.eager(true);
  parser.body_limit(kIsRequest ? 0 : kMostBody);
  bool begun = false;
  while (true) {
    boost::system::error_code error;
    while (!unread_.empty() && !parser.is_done() && !error) {
      begun = true;
      const auto taken = parser.put(boost::asio::buffer(unread_), error);
      unread_.erase(0, taken);
      if (taken == 0) break;
    }
    if (error && error != beast_http::error::need_more) return broken_wire(error.message());
    if (parser.is_done()) return read_message(parser.get());
    DROVER_CHECK_OK(await(input_, POLLIN, deadline));
    std::array<char, kReadAtOnce> piece;
    const auto count = ::read(input_, piece.data(), piece.size());
    if (count > 0) {
      unread_.append(piece.data(), static_cast<std::size_t>(count));
    } else if (count == 0 && !begun) {
      return fail(ErrorKind::kNotFound, "The connection to the node's agent has ended");
    } else if (count == 0) {
      return broken_wire("it has ended");
    } else if (errno != EAGAIN && errno != EINTR) {
      return broken_wire("it cannot be read");
    }
  }
}

Result<WireRequest> Wire::receive_request(Deadline deadline) {
  return receive<true, WireRequest>(deadline);
}

Result<WireAnswer> Wire::receive_answer(Deadline deadline) {
  return receive<false, WireAnswer>(deadline);
}

}  // namespace drover::kube
