#include "image/stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include "base/units.h"

namespace drover::image {
namespace {
constexpr std::size_t kBlock = 64 * 1024;
}

Status drain(ByteStream& stream) {
  while (true) {
    DROVER_TRY(const auto bytes, stream.next());
    if (bytes.empty()) return {};
  }
}

Result<std::string> read_whole(ByteStream& stream, std::string_view name, std::uint64_t limit) {
  std::string content;
  while (true) {
    DROVER_TRY(const auto bytes, stream.next());
    if (bytes.empty()) return content;
    content += bytes;
    if (content.size() > limit)
      return fail(ErrorKind::kInvalid,
                  fmt::format("'{}' is larger than {}, the most that it may be", name, format_bytes(limit)));
  }
}

FileStream::FileStream(UniqueFd fd, std::string name, std::uint64_t size)
    : fd_(std::move(fd)), name_(std::move(name)), size_(size), buffer_(kBlock) {}

Result<std::string_view> FileStream::next() {
  while (true) {
    const auto count = ::pread(fd_.get(), buffer_.data(), buffer_.size(), static_cast<off_t>(position_));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return fail_errno(fmt::format("Failed to read '{}'", name_), errno);
    position_ += static_cast<std::uint64_t>(count);
    return std::string_view(buffer_.data(), static_cast<std::size_t>(count));
  }
}

std::uint64_t FileStream::skip(std::uint64_t count) {
  const auto skipped = std::min(count, size_ - std::min(position_, size_));
  position_ += skipped;
  return skipped;
}

Result<std::string_view> GuardedStream::next() {
  DROVER_TRY(const auto bytes, inner_.next());
  DROVER_CHECK_OK(may_(bytes.size()));
  return bytes;
}

Result<std::string_view> HashingStream::next() {
  DROVER_TRY(const auto bytes, inner_.next());
  size_ += bytes.size();
  hash_.update(bytes);
  return bytes;
}

}  // namespace drover::image
