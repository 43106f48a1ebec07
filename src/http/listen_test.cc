#include "http/listen.h"

#include <gtest/gtest.h>

namespace drover::http {
namespace {

TEST(ListenAddress, ReadsNamesAndAddresses) {
  EXPECT_EQ(parse_listen_address("127.0.0.1:8080").value(), (ListenAddress{"127.0.0.1", 8080}));
  EXPECT_EQ(parse_listen_address("[::1]:0").value(), (ListenAddress{"::1", 0}));
  EXPECT_EQ(parse_listen_address("gpu1.example.org:80").value(), (ListenAddress{"gpu1.example.org", 80}));
  EXPECT_EQ(to_string(ListenAddress{"::1", 80}), "[::1]:80");
}

TEST(ListenAddress, RefusesWhatIsNone) {
  for (const auto* text :
       {"", ":80", "host", "host:", "host:99999", "host:80x", "host:-1", "[::1", "[::1]80", "a b:80"})
    EXPECT_FALSE(parse_listen_address(text)) << text;
}

}  // namespace
}  // namespace drover::http
