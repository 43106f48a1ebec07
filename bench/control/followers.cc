#include "followers.h"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <stdexcept>

#include "connection.h"

namespace drover::bench {
namespace {

/// How an event begins, or its second line, wherever a chunk may have been cut.
constexpr std::string_view kMark = "\nevent: ";
constexpr int kLookAroundMs = 20;

}  // namespace

Followers::Followers(std::uint16_t port, const std::string& target, int count, bool reads)
    : followers_(static_cast<std::size_t>(count)), poll_(::epoll_create1(EPOLL_CLOEXEC)) {
  const auto request =
      fmt::format("GET {} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nAccept: text/event-stream\r\n\r\n", target, port);
  for (auto& one : followers_) {
    one.socket = connect_to(port);
    send_all(one.socket.get(), request);
    epoll_event wanted{.events = EPOLLIN, .data = {.ptr = &one}};
    if (::epoll_ctl(poll_.get(), EPOLL_CTL_ADD, one.socket.get(), &wanted) != 0)
      throw std::runtime_error("Failed to wait for a follower's stream");
  }
  if (reads) thread_ = std::thread([this] { read_all(); });
}

Followers::~Followers() {
  stop_ = true;
  if (thread_.joinable()) thread_.join();
}

std::uint64_t Followers::fewest() const {
  return std::ranges::min_element(followers_, {}, [](const One& one) { return one.events.load(); })->events;
}

void Followers::read_all() {
  std::array<epoll_event, 256> ready{};
  std::string buffer(1 << 18, '\0');
  while (!stop_) {
    const int count = ::epoll_wait(poll_.get(), ready.data(), static_cast<int>(ready.size()), kLookAroundMs);
    for (int i = 0; i < count; ++i) {
      auto& one = *static_cast<One*>(ready[static_cast<std::size_t>(i)].data.ptr);
      const auto size = ::recv(one.socket.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
      if (size > 0) {
        const auto seen = count_in(one, buffer.data(), static_cast<std::size_t>(size));
        one.events += seen;
        events_ += seen;
      } else {
        ::epoll_ctl(poll_.get(), EPOLL_CTL_DEL, one.socket.get(), nullptr);
        ++gone_;
      }
    }
  }
}

std::uint64_t Followers::count_in(One& one, const char* bytes, std::size_t size) const {
  std::uint64_t events = 0;
  for (std::size_t i = 0; i < size; ++i) {
    if (bytes[i] == kMark[one.matched])
      ++one.matched;
    else
      one.matched = bytes[i] == kMark[0] ? 1 : 0;  // the mark begins with what it has only once
    if (one.matched < kMark.size()) continue;
    one.matched = 0;
    ++events;
  }
  return events;
}

}  // namespace drover::bench
