#include "cli/top/keys.h"

#include <array>
#include <charconv>
#include <map>
#include <utility>

namespace drover::cli::top {
namespace {

using Kind = Key::Kind;

constexpr char kEscapeByte = '\033';
constexpr std::size_t kLongest = 32;  // a sequence of more bytes is none

const std::map<std::string_view, Kind>& sequences() {
  static const std::map<std::string_view, Kind> all = {
      {"[A", Kind::kUp},      {"[B", Kind::kDown},    {"[C", Kind::kRight},     {"[D", Kind::kLeft},
      {"OA", Kind::kUp},      {"OB", Kind::kDown},    {"OC", Kind::kRight},     {"OD", Kind::kLeft},
      {"[H", Kind::kHome},    {"[F", Kind::kEnd},     {"OH", Kind::kHome},      {"OF", Kind::kEnd},
      {"[1~", Kind::kHome},   {"[4~", Kind::kEnd},    {"[7~", Kind::kHome},     {"[8~", Kind::kEnd},
      {"[Z", Kind::kBackTab}, {"[5~", Kind::kPageUp}, {"[6~", Kind::kPageDown},
  };
  return all;
}

void add_control(char byte, std::vector<Key>& keys) {
  switch (byte) {
    case '\t':
      return keys.push_back({Kind::kTab});
    case '\r':
    case '\n':
      return keys.push_back({Kind::kEnter});
    case '\b':
    case '\x7F':
      return keys.push_back({Kind::kBackspace});
    case '\x03':
      return keys.push_back({Kind::kInterrupt});
    case '\x0C':
      return keys.push_back({Kind::kRedraw});
    case '\x1A':
      return keys.push_back({Kind::kSuspend});
    default:
      return;
  }
}

/// "0;12;5" and how it ends: 'M' a press, 'm' a release.
void add_mouse(std::string_view text, char end, std::vector<Key>& keys) {
  constexpr int kWheel = 64;
  std::array<int, 3> numbers{};
  const char* at = text.data();
  const char* last = at + text.size();
  for (auto& number : numbers) {
    const auto [behind, error] = std::from_chars(at, last, number);
    if (error != std::errc() || number < 0) return;
    at = behind != last && *behind == ';' ? behind + 1 : behind;
  }
  if (end != 'M' || numbers[1] < 1 || numbers[2] < 1) return;
  const auto add = [&](Kind kind) { keys.push_back({kind, "", numbers[1] - 1, numbers[2] - 1}); };
  if (numbers[0] == 0) add(Kind::kPress);
  if (numbers[0] == kWheel) add(Kind::kWheelUp);
  if (numbers[0] == kWheel + 1) add(Kind::kWheelDown);
}

/// How many bytes a sequence has that begins with Escape; 0: there is more to come.
std::size_t length_of_sequence(std::string_view bytes) {
  if (bytes.size() < 2) return 0;
  if (bytes[1] == 'O') return bytes.size() < 3 ? 0 : 3;
  if (bytes[1] != '[') return 1;  // Escape, and then something else
  for (std::size_t i = 2; i < bytes.size(); ++i) {
    if (bytes[i] >= '@' && bytes[i] <= '~') return i + 1;
    if (bytes[i] < ' ' || i > kLongest) return i;
  }
  return 0;
}

std::size_t length_of_letter(char first) {
  const auto byte = static_cast<unsigned char>(first);
  if (byte < 0xC0) return 1;
  return byte < 0xE0 ? 2 : (byte < 0xF0 ? 3 : 4);
}

}  // namespace

/// Takes one key off the front of what is pending; returns its bytes, 0 when it is not there as a whole.
std::size_t KeyReader::take(std::vector<Key>& keys) const {
  const std::string_view bytes = pending_;
  if (bytes.front() == kEscapeByte) {
    const auto length = length_of_sequence(bytes);
    if (length == 1) keys.push_back({Kind::kEscape});
    if (length < 2) return length;
    const auto words = bytes.substr(1, length - 1);
    if (words.starts_with("[<"))
      add_mouse(words.substr(2, words.size() - 3), words.back(), keys);
    else if (const auto found = sequences().find(words); found != sequences().end())
      keys.push_back({found->second});
    return length;
  }
  if (static_cast<unsigned char>(bytes.front()) < ' ' || bytes.front() == '\x7F') {
    add_control(bytes.front(), keys);
    return 1;
  }
  const auto length = length_of_letter(bytes.front());
  if (bytes.size() < length) return 0;
  keys.push_back({Kind::kText, std::string(bytes.substr(0, length))});
  return length;
}

std::vector<Key> KeyReader::feed(std::string_view bytes) {
  std::vector<Key> keys;
  pending_ += bytes;
  while (!pending_.empty()) {
    const auto taken = take(keys);
    if (taken == 0) break;
    pending_.erase(0, taken);
  }
  return keys;
}

std::vector<Key> KeyReader::flush() {
  std::vector<Key> keys;
  if (std::exchange(pending_, "") == std::string(1, kEscapeByte)) keys.push_back({Kind::kEscape});
  return keys;
}

}  // namespace drover::cli::top
