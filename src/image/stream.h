#pragma once

// Bytes that are pulled block by block: how layers travel from a file through checks into a folder without
// ever being whole in memory. Streams are chained by reference: the inner one must outlive the outer. Not
// thread safe.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "image/digest.h"

namespace drover::image {

class ByteStream {
 public:
  virtual ~ByteStream() = default;
  /// The next bytes, valid until the next call; empty at the end, and from then on.
  virtual Result<std::string_view> next() = 0;
  /// Passes over up to `count` bytes without reading them. Returns how many; 0 where it cannot.
  virtual std::uint64_t skip(std::uint64_t /*count*/) { return 0; }
};

/// Reads to the end.
Status drain(ByteStream& stream);
/// Reads to the end into memory; refuses more than `limit` bytes. `name` is for the message.
Result<std::string> read_whole(ByteStream& stream, std::string_view name, std::uint64_t limit);

/// An open file from its start. It keeps its own position, so the descriptor's offset does not matter.
class FileStream : public ByteStream {
 public:
  FileStream(UniqueFd fd, std::string name, std::uint64_t size);
  Result<std::string_view> next() override;
  std::uint64_t skip(std::uint64_t count) override;

 private:
  UniqueFd fd_;
  std::string name_;
  std::uint64_t size_;
  std::uint64_t position_ = 0;
  std::vector<char> buffer_;
};

/// Passes bytes on as long as they may pass: `may` is asked about each piece.
class GuardedStream : public ByteStream {
 public:
  using Guard = std::function<Status(std::uint64_t size)>;
  GuardedStream(ByteStream& inner, Guard may) : inner_(inner), may_(std::move(may)) {}
  Result<std::string_view> next() override;

 private:
  ByteStream& inner_;
  Guard may_;
};

/// Passes bytes on, counts and hashes them.
class HashingStream : public ByteStream {
 public:
  explicit HashingStream(ByteStream& inner) : inner_(inner) {}
  Result<std::string_view> next() override;
  std::uint64_t size() const { return size_; }
  /// Of everything that came through. Call it once, at the end.
  std::string digest() { return hash_.finish(); }

 private:
  ByteStream& inner_;
  std::uint64_t size_ = 0;
  Sha256 hash_;
};

}  // namespace drover::image
