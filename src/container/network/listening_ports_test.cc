#include "container/network/listening_ports.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "base/fd.h"

namespace drover::container {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;

TEST(ListeningPorts, AreThoseOfLinesThatListen) {
  EXPECT_THAT(
      parse_listening_ports(
          "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid\n"
          "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0\n"
          "   1: 0100007F:A1B2 0100007F:1F90 01 00000000:00000000 00:00000000 00000000     0\n"
          "   2: 00000000000000000000000000000000:7918 00000000000000000000000000000000:0000 0A 0:0\n"),
      ElementsAre(8080, 31000));
}

TEST(ListeningPorts, WhatIsNoTableHasNone) {
  for (const auto* text : {"", "\n\n", "a b c 0A", "a :zz c 0A", "a 0:12345 c 0A", "a 0:1F90 c", "    "})
    EXPECT_THAT(parse_listening_ports(text), IsEmpty()) << text;
}

TEST(ListeningPorts, OfThisMachine) {
  UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
  const int port = ntohs(address.sin_port);
  EXPECT_THAT(listening_ports(), Not(Contains(port)));
  ASSERT_EQ(::listen(listener.get(), 1), 0);
  EXPECT_THAT(listening_ports(), Contains(port));
}

}  // namespace
}  // namespace drover::container
