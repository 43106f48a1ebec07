#include "api/mesos/uuid.h"

#include <gtest/gtest.h>

namespace drover::api::mesos {
namespace {

TEST(Uuid, TextAndBytes) {
  const auto bytes = uuid_bytes("00010203-0405-0607-0809-0a0bff0d0e0f");
  ASSERT_TRUE(bytes);
  EXPECT_EQ(*bytes, std::string("\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\xff\x0d\x0e\x0f", 16));
  EXPECT_EQ(uuid_text(*bytes), "00010203-0405-0607-0809-0a0bff0d0e0f");
  for (const auto* text :
       {"", "x", "0001020304050607-0809-0a0bff0d0e0f", "g0010203-0405-0607-0809-0a0bff0d0e0f"})
    EXPECT_FALSE(uuid_bytes(text)) << text;
}

}  // namespace
}  // namespace drover::api::mesos
