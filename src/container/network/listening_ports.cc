#include "container/network/listening_ports.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <string>

#include "base/fd.h"

namespace drover::container {
namespace {

constexpr std::string_view kListen = "0A";
constexpr int kHexadecimal = 16;

std::string_view next_word(std::string_view& line) {
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  const auto word = line.substr(0, line.find(' '));
  line.remove_prefix(word.size());
  return word;
}

/// A line of the table: "sl local_address rem_address st …".
struct Line {
  bool listens = false;
  int port = 0;  ///< 0: none that could be read
};

Line read_line(std::string_view text) {
  std::array<std::string_view, 4> words;
  for (auto& word : words) word = next_word(text);
  const auto& local = words[1];
  const auto colon = local.rfind(':');
  if (words[3] != kListen || colon == std::string_view::npos) return {};
  std::uint16_t port = 0;
  const auto* const end = local.data() + local.size();
  const auto [stop, error] = std::from_chars(local.data() + colon + 1, end, port, kHexadecimal);
  return {true, error == std::errc() && stop == end ? port : 0};
}

/// The table as far as its lines are of those that listen: the kernel writes them first, and behind them
/// every connection of the machine.
std::string listening_part(const char* path) {
  const UniqueFd file(::open(path, O_RDONLY | O_CLOEXEC));
  std::string text;
  std::array<char, 16384> buffer;
  ssize_t count = 0;
  std::size_t judged = 0;
  while (file.valid() && (count = ::read(file.get(), buffer.data(), buffer.size())) > 0) {
    text.append(buffer.data(), static_cast<std::size_t>(count));
    for (auto end = text.find('\n', judged); end != text.npos; end = text.find('\n', judged)) {
      const bool is_heading = judged == 0;
      if (!is_heading && !read_line(std::string_view(text).substr(judged, end - judged)).listens)
        return text.substr(0, judged);
      judged = end + 1;
    }
  }
  return text;
}

}  // namespace

std::set<int> parse_listening_ports(std::string_view table) {
  std::set<int> ports;
  while (!table.empty()) {
    const auto line = table.substr(0, table.find('\n'));
    table.remove_prefix(std::min(line.size() + 1, table.size()));
    if (const int port = read_line(line).port; port != 0) ports.insert(port);
  }
  return ports;
}

std::set<int> listening_ports() {
  std::set<int> ports;
  for (const auto* path : {"/proc/self/net/tcp", "/proc/self/net/tcp6"})
    ports.merge(parse_listening_ports(listening_part(path)));
  return ports;
}

}  // namespace drover::container
