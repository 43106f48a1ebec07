#include "base/shorten.h"

namespace drover {

std::string shortened(std::string text, std::size_t longest) {
  if (text.size() <= longest) return text;
  const auto inside = [&](std::size_t at) { return (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80; };
  auto head = longest / 2;
  auto tail = text.size() - longest / 4;
  while (head > 0 && inside(head)) --head;
  while (tail < text.size() && inside(tail)) ++tail;
  return text.substr(0, head) + "…" + text.substr(tail);
}

}  // namespace drover
