#pragma once

// Tar archives and compressed streams, read through libarchive: the only place that knows that library.
// Nothing here touches the file system. Damaged input is an Error of kInvalid; a failure of the stream
// underneath is passed on as it is. Not thread safe.

#include <sys/types.h>

#include <cstdint>
#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "image/stream.h"

namespace drover::image {

struct TarEntry {
  enum class Type { kFile, kDirectory, kSymlink, kHardLink, kFifo, kDevice, kUnknown };

  std::string path;  ///< as the archive has it: not yet to be trusted
  Type type = Type::kUnknown;
  std::string link_target;  ///< of symbolic and hard links
  std::uint64_t size = 0;   ///< bytes of a file
  mode_t mode = 0;          ///< permission bits with setuid, setgid and sticky
  std::int64_t uid = 0;
  std::int64_t gid = 0;
  timespec modified{};
  std::vector<std::pair<std::string, std::string>> attributes;  ///< extended attributes: name, value
};

class ArchiveInput;

inline constexpr std::uint64_t kHeaderLimit = 8 << 20;

/// Of a plain tar archive. What describes one entry (extended headers, a map of holes) is kHeaderLimit bytes
/// at most.
class TarReader {
 public:
  struct Block {
    std::string_view bytes;  ///< valid until the next call
    std::uint64_t offset = 0;
  };

  /// `input` must outlive the reader.
  explicit TarReader(ByteStream& input);
  ~TarReader();
  TarReader(TarReader&&) noexcept;

  /// The next entry; nullopt at the end of the archive.
  Result<std::optional<TarEntry>> next();
  /// Content of the current entry, in ascending order; what lies between blocks is a hole. Empty at its end.
  Result<Block> block();

 private:
  std::unique_ptr<ArchiveInput> input_;
};

/// Sees through gzip or zstd; anything else passes as it is. Refuses what is compressed twice: a few bytes
/// could keep it busy for years.
class DecompressedStream : public ByteStream {
 public:
  explicit DecompressedStream(ByteStream& input);
  ~DecompressedStream() override;
  Result<std::string_view> next() override;

 private:
  std::unique_ptr<ArchiveInput> input_;
  bool opened_ = false;
};

}  // namespace drover::image
