#include "base/quantity.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace drover {
namespace {

Quantity quantity(std::string_view text) {
  return Quantity::parse(text).value();
}

TEST(Quantity, ComparesByValue) {
  EXPECT_EQ(quantity("1Ki"), quantity("1024"));
  EXPECT_EQ(quantity("1.5k"), quantity("1500"));
  EXPECT_EQ(quantity("1e-3"), quantity("1m"));
  EXPECT_LT(quantity("999m"), quantity("1"));
  EXPECT_GT(quantity("1e27"), quantity("9223372036854775807"));
  EXPECT_LT(quantity("-1e27"), quantity("-1n"));
  EXPECT_EQ(quantity("0.1n"), quantity("1n"));
}

TEST(Quantity, IsReadAsLooselyAsKubernetesDoes) {
  for (const char* text : {"-", "+", ".", "Gi", "00", "0.", "m"})
    EXPECT_EQ(quantity(text), Quantity(0)) << text;
  for (const char* text : {"", " ", "1 ", "1K", "1Gib", "1..5", "1e", "e", "1e+", "0x10", "--1", "1i", "1 i"})
    EXPECT_FALSE(Quantity::parse(text)) << text;
}

TEST(Quantity, IsWholeOnlyWhereKubernetesSaysSo) {
  EXPECT_EQ(quantity("80Gi").whole(), 80LL << 30);
  EXPECT_EQ(quantity("1e3").whole(), 1000);
  EXPECT_EQ(quantity("1500m").whole(), std::nullopt);
  EXPECT_EQ(quantity("1000m").whole(), std::nullopt);
  EXPECT_EQ(quantity("1.5Gi").whole(), std::nullopt);
  EXPECT_EQ(quantity("9223372036854775807").whole(), std::nullopt);
  EXPECT_EQ(quantity("1e19").whole(), std::nullopt);
}

TEST(Quantity, BinaryOnesEndAt63Bits) {
  EXPECT_EQ(quantity("100Ei").rounded_up(), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(quantity("1e20").rounded_up(), std::nullopt);
}

TEST(Quantity, SumsStayExact) {
  EXPECT_EQ(quantity("1Gi").plus(quantity("1m")).value(), quantity("1073741824.001"));
  EXPECT_EQ(quantity("1").plus(quantity("1").negated()).value().sign(), 0);
  EXPECT_EQ(quantity("1e9").plus(quantity("1e10")).value().whole(), 11'000'000'000);
  EXPECT_FALSE(quantity("1.5Gi").plus(quantity("1")));
  EXPECT_FALSE(quantity("1e37").plus(quantity("1n")));
}

RC_GTEST_PROP(QuantityProperty, OrdersAsNumbersDo, (std::int32_t a, std::int32_t b)) {
  RC_ASSERT((quantity(std::to_string(a) + "m") < quantity(std::to_string(b) + "m")) == (a < b));
  RC_ASSERT(quantity(std::to_string(a)).plus(quantity(std::to_string(b))).value().whole() ==
            std::int64_t{a} + b);
}

RC_GTEST_PROP(QuantityProperty, NoTextIsTooStrange, ()) {
  const auto text = *rc::gen::container<std::string>(rc::gen::elementOf(std::string("0019.+-eEinumkKMGTP ")));
  if (const auto read = Quantity::parse(text)) RC_ASSERT(read->negated().negated() == *read);
}

}  // namespace
}  // namespace drover
