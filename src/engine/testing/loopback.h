#pragma once

// A server's socket for tests.

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/fd.h"

namespace drover::engine::testing {

/// Listens on a free port of loopback.
struct LoopbackListener {
  LoopbackListener() : socket(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(socket.get(), SOMAXCONN), 0);
    ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size);
    port = ntohs(address.sin_port);
  }
  /// Whoever waits for a client is told that none comes any more.
  void shut() const { ::shutdown(socket.get(), SHUT_RDWR); }
  /// Of the next client; none after shut().
  UniqueFd accept() const { return UniqueFd(::accept(socket.get(), nullptr, nullptr)); }

  UniqueFd socket;
  int port = 0;
};

}  // namespace drover::engine::testing
