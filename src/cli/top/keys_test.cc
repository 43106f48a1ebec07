#include "cli/top/keys.h"

#include <gmock/gmock.h>

#include <random>

namespace drover::cli::top {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Kind = Key::Kind;

TEST(TopKeys, AreReadHoweverTheyAreCut) {
  const std::string bytes =
      "q\033[A\033OB\t\033[Z\033[5~\033[<0;12;5M\033[<0;12;5m\033[<64;1;1M\u00e4\r\x7f\x03\x1a";
  const std::vector<Key> all = {{Kind::kText, "q"},
                                {Kind::kUp},
                                {Kind::kDown},
                                {Kind::kTab},
                                {Kind::kBackTab},
                                {Kind::kPageUp},
                                {Kind::kPress, "", 11, 4},
                                {Kind::kWheelUp, "", 0, 0},
                                {Kind::kText, "\u00e4"},
                                {Kind::kEnter},
                                {Kind::kBackspace},
                                {Kind::kInterrupt},
                                {Kind::kSuspend}};
  for (const std::size_t piece : {1U, 2U, 3U, 1000U}) {
    KeyReader reader;
    std::vector<Key> keys;
    for (std::size_t at = 0; at < bytes.size(); at += piece)
      for (auto& key : reader.feed(std::string_view(bytes).substr(at, piece))) keys.push_back(std::move(key));
    EXPECT_EQ(keys, all) << piece;
    EXPECT_FALSE(reader.waits());
  }
}

TEST(TopKeys, EscapeIsAKeyWhenNothingFollows) {
  KeyReader reader;
  EXPECT_THAT(reader.feed("\033"), IsEmpty());
  EXPECT_TRUE(reader.waits());
  EXPECT_THAT(reader.flush(), ElementsAre(Key{Kind::kEscape}));
  EXPECT_FALSE(reader.waits());
  EXPECT_THAT(reader.feed("\033q"), ElementsAre(Key{Kind::kEscape}, Key{Kind::kText, "q"}));
  reader.feed("\033[1");
  EXPECT_THAT(reader.flush(), IsEmpty()) << "half a key is none";
}

TEST(TopKeys, WhatNobodyKnowsIsDroppedWhole) {
  KeyReader reader;
  EXPECT_THAT(reader.feed("\033[200~\033[<1;1M\033[<0;0;0M\033[<99999999999;1;1M\033[12;34;56q\033[?1;2c"),
              IsEmpty());
  EXPECT_THAT(reader.feed("\033[" + std::string(1000, '1')).size(), testing::Lt(1001U));
  std::mt19937 random(5);  // NOLINT: the same each time
  for (int round = 0; round < 20000; ++round) {
    std::string bytes;
    for (int i = 0; i < 6; ++i) bytes += static_cast<char>(random() % 4 == 0 ? '\033' : random() % 256);
    reader.feed(bytes);
  }
  reader.flush();
  EXPECT_THAT(reader.feed("q"), ElementsAre(Key{Kind::kText, "q"}));
}

}  // namespace
}  // namespace drover::cli::top
