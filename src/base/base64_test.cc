#include "base/base64.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace drover {
namespace {

TEST(Base64, KnownValues) {
  EXPECT_EQ(decode_base64("AP8="), std::string("\0\xff", 2));
  EXPECT_EQ(decode_base64("YWJj"), "abc");
  EXPECT_EQ(decode_base64(""), "");
  EXPECT_EQ(encode_base64("abc"), "YWJj");
  for (const char* bad : {"YWJ", "Y*Jj", "YW=j"}) EXPECT_EQ(decode_base64(bad), std::nullopt) << bad;
}

TEST(Base64, PropertyReadsBackWhatItWrote) {
  EXPECT_TRUE(
      rc::check([](const std::string& bytes) { RC_ASSERT(decode_base64(encode_base64(bytes)) == bytes); }));
}

}  // namespace
}  // namespace drover
