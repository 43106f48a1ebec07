#include "base/frames.h"

namespace drover {
namespace {

constexpr std::size_t kHead = 5;

}  // namespace

std::string to_text(const Frame& frame) {
  std::string text(1, frame.channel);
  for (int shift = 24; shift >= 0; shift -= 8)
    text += static_cast<char>(frame.payload.size() >> shift & 0xff);
  return text += frame.payload;
}

void FrameParser::append(std::string_view piece) {
  text_.erase(0, begin_);
  begin_ = 0;
  text_ += piece;
}

std::optional<Frame> FrameParser::next() {
  if (broken_ || text_.size() - begin_ < kHead) return std::nullopt;
  std::uint32_t size = 0;
  for (std::size_t i = 1; i < kHead; ++i) size = size << 8 | static_cast<unsigned char>(text_[begin_ + i]);
  broken_ = size > kMostFrame;
  if (broken_ || text_.size() - begin_ < kHead + size) return std::nullopt;
  Frame frame{text_[begin_], text_.substr(begin_ + kHead, size)};
  begin_ += kHead + size;
  return frame;
}

}  // namespace drover
