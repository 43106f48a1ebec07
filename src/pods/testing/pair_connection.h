#pragma once

// A connection to the agent of a node that a test plays.

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <memory>
#include <utility>

#include "base/fd.h"
#include "pods/node_agents.h"

namespace drover::pods::testing {

/// One end of a pair, as a command's input and output are.
class PairConnection final : public AgentConnection {
 public:
  /// And the other end, which is the agent's.
  static std::pair<std::unique_ptr<AgentConnection>, UniqueFd> make() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()), 0);
    return {std::make_unique<PairConnection>(UniqueFd(ends[0])), UniqueFd(ends[1])};
  }

  explicit PairConnection(UniqueFd socket) : socket_(std::move(socket)) {}
  int input() const override { return socket_.get(); }
  int output() const override { return socket_.get(); }

 private:
  UniqueFd socket_;
};

}  // namespace drover::pods::testing
