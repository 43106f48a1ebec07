#include "container/network/listening_ports.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>

#include "base/files.h"

namespace drover::container {
namespace {

constexpr std::uint64_t kMostTable = 64ULL << 20;
constexpr std::string_view kListen = "0A";
constexpr int kHexadecimal = 16;

std::string_view next_word(std::string_view& line) {
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  const auto word = line.substr(0, line.find(' '));
  line.remove_prefix(word.size());
  return word;
}

/// Of "sl local_address rem_address st …"; 0 when nobody listens there.
int listening_port(std::string_view line) {
  std::array<std::string_view, 4> words;
  for (auto& word : words) word = next_word(line);
  const auto& local = words[1];
  const auto colon = local.rfind(':');
  if (words[3] != kListen || colon == std::string_view::npos) return 0;
  std::uint16_t port = 0;
  const auto* const end = local.data() + local.size();
  const auto [stop, error] = std::from_chars(local.data() + colon + 1, end, port, kHexadecimal);
  return error == std::errc() && stop == end ? port : 0;
}

}  // namespace

std::set<int> parse_listening_ports(std::string_view table) {
  std::set<int> ports;
  while (!table.empty()) {
    const auto line = table.substr(0, table.find('\n'));
    table.remove_prefix(std::min(line.size() + 1, table.size()));
    if (const int port = listening_port(line); port != 0) ports.insert(port);
  }
  return ports;
}

std::set<int> listening_ports() {
  std::set<int> ports;
  for (const auto* path : {"/proc/self/net/tcp", "/proc/self/net/tcp6"})
    if (const auto table = read_file(path, kMostTable)) ports.merge(parse_listening_ports(*table));
  return ports;
}

}  // namespace drover::container
