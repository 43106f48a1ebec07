#include "cli/tar.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string_view>

namespace drover::cli {
namespace {

constexpr std::size_t kBlock = 512;
constexpr std::size_t kLongestName = 100;
constexpr std::uint64_t kLargestSize = 077777777777;  // eleven octal digits

/// Where the fields of a header stand.
struct Field {
  std::size_t at, size;
};
constexpr Field kName{0, 100}, kMode{100, 8}, kUid{108, 8}, kGid{116, 8}, kSize{124, 12}, kModified{136, 12},
    kChecksum{148, 8}, kType{156, 1}, kMagic{257, 8};

void put(std::string& block, Field field, std::string_view text) {
  text.copy(block.data() + field.at, std::min(text.size(), field.size));
}

void put_octal(std::string& block, Field field, std::uint64_t number) {
  put(block, field, fmt::format("{:0{}o}", number, field.size - 1));
}

std::string block_of(std::string_view name, char type, std::uint64_t size, unsigned mode,
                     TimePoint modified) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(modified.time_since_epoch()).count();
  std::string block(kBlock, '\0');
  put(block, kName, name);
  put_octal(block, kMode, mode & 07777U);
  put_octal(block, kUid, 0);
  put_octal(block, kGid, 0);
  put_octal(block, kSize, std::min(size, kLargestSize));
  put_octal(block, kModified, static_cast<std::uint64_t>(std::max<std::int64_t>(0, seconds)));
  put(block, kType, std::string_view(&type, 1));
  put(block, kMagic, std::string_view("ustar\00000", 8));
  put(block, kChecksum, "        ");
  const auto sum = std::accumulate(block.begin(), block.end(), 0U, [](unsigned total, char c) {
    return total + static_cast<unsigned char>(c);
  });
  put(block, kChecksum, fmt::format("{:06o}", sum) + std::string("\0 ", 2));
  return block;
}

/// "27 path=…\n": the number is the length of the whole line.
std::string pax_line(std::string_view key, std::string_view value) {
  const auto rest = fmt::format(" {}={}\n", key, value);
  auto length = rest.size() + 1;
  while (fmt::format("{}", length).size() + rest.size() != length) ++length;
  return fmt::format("{}{}", length, rest);
}

}  // namespace

std::string tar_header(const TarEntry& entry) {
  const auto path = entry.folder ? entry.path + "/" : entry.path;
  const auto size = entry.folder ? 0 : entry.size;
  std::string more;
  if (path.size() > kLongestName) more += pax_line("path", path);
  if (size > kLargestSize) more += pax_line("size", fmt::format("{}", size));
  std::string header;
  if (!more.empty())
    header = block_of("pax", 'x', more.size(), 0644, entry.modified_at) + more + tar_padding(more.size());
  return header + block_of(path.substr(0, kLongestName), entry.folder ? '5' : '0', size, entry.mode,
                           entry.modified_at);
}

std::string tar_padding(std::uint64_t size) {
  return std::string((kBlock - size % kBlock) % kBlock, '\0');
}

std::string tar_end() {
  return std::string(2 * kBlock, '\0');
}

}  // namespace drover::cli
