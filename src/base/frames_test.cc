#include "base/frames.h"

#include <gmock/gmock.h>

namespace drover {
namespace {

using testing::ElementsAre;

std::vector<Frame> frames_in(FrameParser& parser) {
  std::vector<Frame> frames;
  while (auto frame = parser.next()) frames.push_back(std::move(*frame));
  return frames;
}

TEST(Frames, AreFoundInWhateverPiecesTheyCome) {
  const Frame first{0, std::string("a\0b", 3)}, second{3, ""}, third{1, std::string(300, 'x')};
  const auto text = to_text(first) + to_text(second) + to_text(third);
  EXPECT_EQ(text.substr(0, 8), std::string("\0\0\0\0\3a\0b", 8));
  for (const std::size_t size : {1UL, 2UL, 7UL, text.size()}) {
    FrameParser parser;
    std::vector<Frame> found;
    for (std::size_t begin = 0; begin < text.size(); begin += size) {
      parser.append(std::string_view(text).substr(begin, size));
      for (auto& frame : frames_in(parser)) found.push_back(std::move(frame));
    }
    EXPECT_THAT(found, ElementsAre(first, second, third)) << size;
  }
}

TEST(Frames, OneThatIsTooLongIsNotWaitedFor) {
  FrameParser parser;
  parser.append(to_text({2, "x"}) + std::string("\0\0\x10\0\1", 5));
  EXPECT_THAT(frames_in(parser), ElementsAre(Frame{2, "x"}));
  EXPECT_TRUE(parser.is_broken());
  parser.append(std::string(2 << 20, 'y'));
  EXPECT_EQ(parser.next(), std::nullopt);
}

}  // namespace
}  // namespace drover
