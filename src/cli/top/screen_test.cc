#include "cli/top/screen.h"

#include <gmock/gmock.h>

#include <random>

namespace drover::cli::top {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(TopScreen, CutsWhatIsTooLongAndSaysSo) {
  Screen screen(10, 2, true);
  EXPECT_EQ(screen.put(0, 0, "0123456789"), 10);
  EXPECT_EQ(screen.put(0, 1, "0123456789", {}, 4), 4);
  EXPECT_EQ(screen.plain(), "0123456789\n012\u2026\n");
  screen.put_right(4, 1, "abc", {}, 6);
  screen.put(0, 5, "outside");
  screen.put(12, 0, "outside");
  EXPECT_EQ(screen.plain(), "0123456789\n012\u2026   abc\n");
}

TEST(TopScreen, NobodysTextIsObeyed) {
  Screen screen(40, 1, true);
  screen.put(0, 0, "a\033[2J\u009b1m\u202eb\nc\xff");
  EXPECT_EQ(screen.plain(), "a?[2J?1m?b?c?\n");
  Screen ascii(40, 1, false);
  ascii.put(0, 0, "t\u00e4sk \u540d");
  EXPECT_EQ(ascii.plain(), "t?sk ?\n");
}

TEST(TopScreen, WideLettersTakeTwoCellsAndAreNeverHalf) {
  Screen screen(6, 1, true);
  EXPECT_EQ(screen.put(0, 0, "\u540d\u540d"), 4);
  screen.put(1, 0, "x");
  EXPECT_EQ(screen.plain(), " x\u540d\n");
  screen.put(2, 0, "y");
  EXPECT_EQ(screen.plain(), " xy\n");
  Screen narrow(3, 1, true);
  narrow.put(0, 0, "\u540d\u540d");
  EXPECT_EQ(narrow.plain(), "\u540d\u2026\n");
}

TEST(TopScreen, MarksStayWithTheirLetterAndAreNotEndless) {
  Screen screen(4, 1, true);
  std::string text = "e";
  for (int i = 0; i < 100; ++i) text += "\u0301";
  EXPECT_EQ(screen.put(0, 0, text + "x"), 2);
  EXPECT_LE(screen.at(0, 0).glyph.size(), 16U);
  EXPECT_EQ(screen.at(1, 0).glyph, "x");
}

TEST(TopScreen, BarsAndGraphsSayHowMuch) {
  Screen screen(12, 2, true);
  screen.bar(0, 0, 4, 50, {});
  screen.graph(0, 1, 6, {1, 2, -1, 0, 50, 100, 300}, {});
  EXPECT_EQ(screen.plain(), "\u2588\u2588\n\u2581 \u2581\u2584\u2588\u2588\n");
  Screen ascii(4, 1, false);
  ascii.bar(0, 0, 4, 75, {});
  EXPECT_EQ(ascii.plain(), "|||\n");
  ascii.bar(0, 0, 4, 1e9, {});
  EXPECT_EQ(ascii.plain(), "||||\n");
}

TEST(TopScreen, OnlyChangesAreTold) {
  Screen before(80, 24, true);
  before.put(0, 0, "GPU 0  12%");
  auto after = before;
  EXPECT_EQ(changes(&before, after, true), "");
  after.put(7, 0, "13%", {.colour = Colour::kRed});
  const auto told = changes(&before, after, true);
  EXPECT_EQ(told, "\033[1;8H\033[0;31m13%\033[0m");
  EXPECT_EQ(changes(&before, after, false), "\033[1;8H\033[0m13%\033[0m") << "without colours";
  EXPECT_THAT(changes(nullptr, after, true), testing::StartsWith("\033[0m\033[2J"));
  EXPECT_THAT(changes(nullptr, Screen(10, 3, true), true), "\033[0m\033[2J");
  const Screen other(20, 5, true);
  EXPECT_THAT(changes(&other, after, true), HasSubstr("\033[2J"));
  EXPECT_THAT(told, Not(HasSubstr("GPU")));
}

/// Plays what changes() tells, as a terminal does.
class Played {
 public:
  Played(int width, int height) : screen_(width, height, true) {}

  void play(std::string_view bytes) {
    while (!bytes.empty()) {
      if (bytes.front() != '\033') {
        put(bytes);
        continue;
      }
      const auto end = bytes.find_first_of("HJm", 1);
      const std::string words(bytes.substr(2, end - 2));
      if (bytes[end] == 'H') {
        y_ = std::stoi(words) - 1;
        x_ = std::stoi(words.substr(words.find(';') + 1)) - 1;
      }
      if (bytes[end] == 'J') screen_ = Screen(screen_.width(), screen_.height(), true);
      if (bytes[end] == 'm') reversed_ = words.find('7') != std::string::npos;
      bytes.remove_prefix(end + 1);
    }
  }
  const Screen& screen() const { return screen_; }

 private:
  void put(std::string_view& bytes) {
    std::size_t size = 1;
    while (size < bytes.size() && (static_cast<unsigned char>(bytes[size]) & 0xC0U) == 0x80) ++size;
    x_ = screen_.put(x_, y_, bytes.substr(0, size), {.reversed = reversed_});
    bytes.remove_prefix(size);
  }

  Screen screen_;
  int x_ = 0, y_ = 0;
  bool reversed_ = false;
};

TEST(TopScreen, ATerminalThatIsToldAllChangesShowsTheLastScreen) {
  std::mt19937 random(11);  // NOLINT: the same each time
  const auto below = [&](int most) { return static_cast<int>(random() % static_cast<unsigned>(most)); };
  Played terminal(30, 6);
  std::optional<Screen> before;
  for (int round = 0; round < 2000; ++round) {
    Screen after = before && below(3) > 0 ? *before : Screen(30, 6, true);
    for (int i = below(4); i >= 0; --i) {
      constexpr const char* kTexts[] = {"a", "\u540d\u524d", "loss 0.2", "\u2588\u2588", " "};
      after.put(below(30), below(6), kTexts[below(5)], {.reversed = below(2) == 0});
    }
    terminal.play(changes(before ? &*before : nullptr, after, true));
    for (int y = 0; y < 6; ++y)
      for (int x = 0; x < 30; ++x)
        ASSERT_EQ(terminal.screen().at(x, y), after.at(x, y)) << round << ": " << x << "," << y;
    before = std::move(after);
  }
}

}  // namespace
}  // namespace drover::cli::top
