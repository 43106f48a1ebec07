#include "image/tar.h"

#include <archive.h>
#include <archive_entry.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/units.h"

namespace drover::image {

/// One libarchive reader over a ByteStream. Errors of the stream come back unchanged.
class ArchiveInput {
 public:
  enum class Format {
    kTar,  ///< entries of a plain tar
    kRaw,  ///< one entry: the input, decompressed
  };

  ArchiveInput(ByteStream& stream, Format format) : stream_(stream), format_(format) {
    archive_.reset(::archive_read_new());
    if (format == Format::kTar) {
      ::archive_read_support_format_tar(archive_.get());
    } else {
      ::archive_read_support_format_raw(archive_.get());
      ::archive_read_support_filter_gzip(archive_.get());
      ::archive_read_support_filter_zstd(archive_.get());
    }
  }

  /// nullptr at the end.
  Result<archive_entry*> header() {
    archive_entry* entry = nullptr;
    if (!opened_) {
      const int status = ::archive_read_open2(archive_.get(), this, nullptr, read, skip, nullptr);
      if (status != ARCHIVE_OK) return failure();
      opened_ = true;
    }
    if (std::exchange(in_entry_, false) && ::archive_read_data_skip(archive_.get()) != ARCHIVE_OK)
      return failure();
    header_bytes_ = 0;
    in_header_ = format_ == Format::kTar;
    const int status = ::archive_read_next_header(archive_.get(), &entry);
    in_header_ = false;
    switch (status) {
      case ARCHIVE_EOF:
        return nullptr;
      case ARCHIVE_OK:
      case ARCHIVE_WARN:  // a name that is not UTF-8, an attribute that it does not know: the entry is whole
        if (::archive_filter_count(archive_.get()) > kOneFilter)
          return fail(ErrorKind::kInvalid, "it is compressed more than once");
        in_entry_ = true;
        return entry;
      default:
        return failure();
    }
  }

  Result<TarReader::Block> block() {
    const void* bytes = nullptr;
    std::size_t size = 0;
    la_int64_t offset = 0;
    // An empty block is not the end: a hole at the end of a sparse file is told that way.
    while (size == 0) {
      const int status = ::archive_read_data_block(archive_.get(), &bytes, &size, &offset);
      if (status == ARCHIVE_EOF) return TarReader::Block{};
      if (status != ARCHIVE_OK && status != ARCHIVE_WARN) return failure();
    }
    if (offset < 0) return failure();
    return TarReader::Block{{static_cast<const char*>(bytes), size}, static_cast<std::uint64_t>(offset)};
  }

 private:
  static constexpr int kOneFilter = 2;  ///< as libarchive counts: its input is one, too

  /// libarchive keeps in memory what it reads of a header.
  Result<std::string_view> next() {
    DROVER_TRY(const auto bytes, stream_.next());
    header_bytes_ += bytes.size();
    if (in_header_ && header_bytes_ > kHeaderLimit)
      return fail(ErrorKind::kInvalid,
                  fmt::format("it has an entry with a header of more than {}", format_bytes(kHeaderLimit)));
    return bytes;
  }

  static la_ssize_t read(archive* handle, void* self_pointer, const void** buffer) {
    auto* self = static_cast<ArchiveInput*>(self_pointer);
    auto bytes = self->next();
    if (!bytes) {
      self->stream_error_ = std::move(bytes).error();
      ::archive_set_error(handle, EIO, "the input failed");
      return -1;
    }
    *buffer = bytes->data();
    return static_cast<la_ssize_t>(bytes->size());
  }

  static la_int64_t skip(archive*, void* self_pointer, la_int64_t count) {
    auto* self = static_cast<ArchiveInput*>(self_pointer);
    return static_cast<la_int64_t>(
        self->stream_.skip(static_cast<std::uint64_t>(std::max<la_int64_t>(count, 0))));
  }

  Failure failure() const {
    if (stream_error_) return Failure(*stream_error_);
    const char* said = ::archive_error_string(archive_.get());
    const auto what = format_ == Format::kTar ? "it is not a whole tar archive" : "it cannot be decompressed";
    return fail(ErrorKind::kInvalid, said != nullptr ? fmt::format("{}: {}", what, said) : what);
  }

  ByteStream& stream_;
  Format format_;
  std::unique_ptr<archive, decltype([](archive* handle) { ::archive_read_free(handle); })> archive_;
  std::optional<Error> stream_error_;
  bool opened_ = false;
  bool in_entry_ = false;
  bool in_header_ = false;
  std::uint64_t header_bytes_ = 0;
};

namespace {

TarEntry::Type type_of(archive_entry* entry) {
  if (::archive_entry_hardlink(entry) != nullptr) return TarEntry::Type::kHardLink;
  switch (::archive_entry_filetype(entry)) {
    case AE_IFREG:
      return TarEntry::Type::kFile;
    case AE_IFDIR:
      return TarEntry::Type::kDirectory;
    case AE_IFLNK:
      return TarEntry::Type::kSymlink;
    case AE_IFIFO:
      return TarEntry::Type::kFifo;
    case AE_IFCHR:
    case AE_IFBLK:
      return TarEntry::Type::kDevice;
    default:
      return TarEntry::Type::kUnknown;
  }
}

std::string text(const char* value) {
  return value != nullptr ? value : "";
}

std::vector<std::pair<std::string, std::string>> attributes_of(archive_entry* entry) {
  std::vector<std::pair<std::string, std::string>> attributes;
  ::archive_entry_xattr_reset(entry);
  const char* name = nullptr;
  const void* value = nullptr;
  std::size_t size = 0;
  while (::archive_entry_xattr_next(entry, &name, &value, &size) == ARCHIVE_OK)
    attributes.emplace_back(text(name), std::string(static_cast<const char*>(value), size));
  return attributes;
}

}  // namespace

TarReader::TarReader(ByteStream& input)
    : input_(std::make_unique<ArchiveInput>(input, ArchiveInput::Format::kTar)) {}
TarReader::~TarReader() = default;
TarReader::TarReader(TarReader&&) noexcept = default;

Result<std::optional<TarEntry>> TarReader::next() {
  DROVER_TRY(auto* const raw, input_->header());
  if (raw == nullptr) return std::nullopt;
  TarEntry entry;
  entry.path = text(::archive_entry_pathname(raw));
  entry.type = type_of(raw);
  if (entry.type == TarEntry::Type::kHardLink) entry.link_target = text(::archive_entry_hardlink(raw));
  if (entry.type == TarEntry::Type::kSymlink) entry.link_target = text(::archive_entry_symlink(raw));
  entry.size = static_cast<std::uint64_t>(std::max<la_int64_t>(::archive_entry_size(raw), 0));
  entry.mode = ::archive_entry_perm(raw) & 07777;
  entry.uid = ::archive_entry_uid(raw);
  entry.gid = ::archive_entry_gid(raw);
  entry.modified.tv_sec = ::archive_entry_mtime(raw);
  entry.modified.tv_nsec = std::clamp(::archive_entry_mtime_nsec(raw), 0L, 999'999'999L);
  entry.attributes = attributes_of(raw);
  return entry;
}

Result<TarReader::Block> TarReader::block() {
  return input_->block();
}

DecompressedStream::DecompressedStream(ByteStream& input)
    : input_(std::make_unique<ArchiveInput>(input, ArchiveInput::Format::kRaw)) {}
DecompressedStream::~DecompressedStream() = default;

Result<std::string_view> DecompressedStream::next() {
  if (!opened_) {
    DROVER_TRY(const auto* const raw, input_->header());
    opened_ = true;
    if (raw == nullptr) return std::string_view();
  }
  DROVER_TRY(const auto block, input_->block());
  return block.bytes;
}

}  // namespace drover::image
