#include "base/shorten.h"

namespace drover {

std::string shortened(std::string text) {
  constexpr std::size_t kLongest = 400;
  if (text.size() <= kLongest) return text;
  const auto inside = [&](std::size_t at) { return (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80; };
  auto head = kLongest / 2;
  auto tail = text.size() - kLongest / 4;
  while (head > 0 && inside(head)) --head;
  while (tail < text.size() && inside(tail)) ++tail;
  return text.substr(0, head) + "…" + text.substr(tail);
}

}  // namespace drover
