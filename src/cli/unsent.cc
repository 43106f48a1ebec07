#include "cli/unsent.h"

#include <algorithm>
#include <utility>

namespace drover::cli {
namespace {

constexpr char kFirst = 'P' - '@', kSecond = 'Q' - '@';

}  // namespace

bool Unsent::take(std::uint64_t taken) {
  const bool known = taken >= begin_;
  if (known) text_.erase(0, std::min<std::uint64_t>(taken - begin_, text_.size()));
  begin_ = taken;
  return known;
}

std::string LeaveKeys::pass(std::string_view typed) {
  std::string passed;
  for (const char key : typed) {
    if (pressed_) break;
    const bool waited = std::exchange(first_, key == kFirst);
    pressed_ = waited && key == kSecond;
    // A first key that was not followed by the second is an ordinary one.
    if (waited && !pressed_) passed += kFirst;
    if (!first_ && !pressed_) passed += key;
  }
  return passed;
}

}  // namespace drover::cli
