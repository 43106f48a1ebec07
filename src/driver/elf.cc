#include "driver/elf.h"

#include <elf.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "driver/bytes.h"

namespace drover::driver {
namespace {

constexpr std::size_t kMostSegments = 256;
constexpr std::uint64_t kMostDynamic = 64ULL << 10;
constexpr std::uint64_t kMostNote = 64ULL << 10;
constexpr std::size_t kLongestName = 4096;

/// Where the fields of one ELF class lie.
struct Layout {
  std::uint64_t header_size, segment_offset_at, segment_size_at, segment_count_at;
  std::uint64_t segment_size, offset_at, address_at, file_size_at;
  std::uint64_t word;
};
constexpr Layout kLayout32{52, 28, 42, 44, 32, 4, 8, 16, 4};
constexpr Layout kLayout64{64, 32, 54, 56, 56, 8, 16, 32, 8};

struct Segment {
  std::uint32_t type = 0;
  std::uint64_t offset = 0;
  std::uint64_t address = 0;
  std::uint64_t size = 0;
};

class Reader {
 public:
  Reader(int fd, const std::string& name) : fd_(fd), name_(name) {}

  Result<ElfFile> read() {
    DROVER_CHECK_OK(read_header());
    DROVER_CHECK_OK(read_segments());
    for (const auto& segment : segments_) {
      if (segment.type == PT_DYNAMIC) DROVER_CHECK_OK(read_dynamic(segment));
      if (segment.type == PT_NOTE && !file_.abi) DROVER_CHECK_OK(read_notes(segment));
    }
    return file_;
  }

 private:
  Failure damaged(std::string_view what) const {
    return fail(ErrorKind::kCorrupt, fmt::format("'{}' is a damaged ELF file: {}", name_, what),
                "reinstall the package it belongs to");
  }

  /// Up to `size` bytes: fewer at the end of the file.
  Result<std::string> bytes(std::uint64_t offset, std::uint64_t size) const {
    if (offset > static_cast<std::uint64_t>(INT64_MAX)) return damaged("an offset is too large");
    std::string buffer(static_cast<std::size_t>(size), '\0');
    const auto count = ::pread(fd_, buffer.data(), buffer.size(), static_cast<off_t>(offset));
    if (count < 0) return fail_errno(fmt::format("Failed to read '{}'", name_), errno);
    buffer.resize(static_cast<std::size_t>(count));
    return buffer;
  }

  std::optional<std::uint64_t> word_at(std::string_view data, std::uint64_t offset) const {
    if (layout_->word == 8) return number_at<std::uint64_t>(data, offset, order_);
    return number_at<std::uint32_t>(data, offset, order_);
  }

  Status read_header() {
    DROVER_TRY(header_, bytes(0, kLayout64.header_size));
    if (!header_.starts_with(ELFMAG) || header_.size() < EI_NIDENT)
      return fail(ErrorKind::kInvalid, fmt::format("'{}' is not an ELF file", name_));
    const auto elf_class = header_[EI_CLASS];
    const auto data = header_[EI_DATA];
    if ((elf_class != ELFCLASS32 && elf_class != ELFCLASS64) || (data != ELFDATA2LSB && data != ELFDATA2MSB))
      return damaged("its class or byte order is unknown");
    file_.elf_class = elf_class == ELFCLASS64 ? ElfClass::k64 : ElfClass::k32;
    file_.big_endian = data == ELFDATA2MSB;
    layout_ = file_.elf_class == ElfClass::k64 ? &kLayout64 : &kLayout32;
    order_ = file_.big_endian ? ByteOrder::kBig : ByteOrder::kLittle;
    if (header_.size() < layout_->header_size) return damaged("its header is cut off");
    file_.machine = *number_at<std::uint16_t>(header_, 18, order_);
    return {};
  }

  Status read_segments() {
    const auto offset = *word_at(header_, layout_->segment_offset_at);
    const auto size = *number_at<std::uint16_t>(header_, layout_->segment_size_at, order_);
    const auto count = *number_at<std::uint16_t>(header_, layout_->segment_count_at, order_);
    if (count == 0) return {};
    if (count > kMostSegments || size != layout_->segment_size) return damaged("its segment table is wrong");
    DROVER_TRY(const auto table, bytes(offset, std::uint64_t{count} * size));
    if (table.size() < std::size_t{count} * size) return damaged("its segment table is cut off");
    for (std::uint64_t at = 0; at < table.size(); at += size)
      segments_.push_back(
          {*number_at<std::uint32_t>(table, at, order_), *word_at(table, at + layout_->offset_at),
           *word_at(table, at + layout_->address_at), *word_at(table, at + layout_->file_size_at)});
    return {};
  }

  Status read_dynamic(const Segment& segment) {
    DROVER_TRY(const auto table, bytes(segment.offset, std::min(segment.size, kMostDynamic)));
    std::optional<std::uint64_t> strings;
    std::optional<std::uint64_t> soname;
    std::vector<std::uint64_t> needed;
    const auto step = 2 * layout_->word;
    for (std::uint64_t at = 0; at + step <= table.size(); at += step) {
      const auto tag = *word_at(table, at);
      const auto value = *word_at(table, at + layout_->word);
      if (tag == DT_NULL) break;
      if (tag == DT_STRTAB) strings = file_offset(value);
      if (tag == DT_SONAME) soname = value;
      if (tag == DT_NEEDED) needed.push_back(value);
    }
    if (!soname && needed.empty()) return {};
    if (!strings) return damaged("its string table is nowhere");
    if (soname) {
      DROVER_TRY(file_.soname, string_at(*strings, *soname));
    }
    for (const auto name : needed) {
      DROVER_TRY(auto text, string_at(*strings, name));
      file_.needed.push_back(std::move(text));
    }
    return {};
  }

  std::optional<std::uint64_t> file_offset(std::uint64_t address) const {
    for (const auto& segment : segments_)
      if (segment.type == PT_LOAD && address >= segment.address && address - segment.address < segment.size)
        return segment.offset + (address - segment.address);
    return std::nullopt;
  }

  Result<std::string> string_at(std::uint64_t table, std::uint64_t offset) const {
    if (offset > UINT64_MAX - table) return damaged("a name lies outside");
    DROVER_TRY(const auto data, bytes(table + offset, kLongestName));
    const auto text = text_at(data, 0, kLongestName);
    if (!text) return damaged("a name has no end");
    return std::string(*text);
  }

  /// Notes are (name size, data size, type), name and data, both padded to 4 bytes.
  Status read_notes(const Segment& segment) {
    DROVER_TRY(const auto notes, bytes(segment.offset, std::min(segment.size, kMostNote)));
    const auto padded = [](std::uint64_t size) { return (size + 3) / 4 * 4; };
    for (std::uint64_t at = 0;;) {
      const auto name_size = number_at<std::uint32_t>(notes, at, order_);
      const auto data_size = number_at<std::uint32_t>(notes, at + 4, order_);
      const auto type = number_at<std::uint32_t>(notes, at + 8, order_);
      if (!type) return {};
      const auto data = at + 12 + padded(*name_size);
      if (*type == NT_GNU_ABI_TAG && text_at(notes, at + 12, 4) == "GNU") {
        const auto major = number_at<std::uint32_t>(notes, data + 4, order_);
        const auto minor = number_at<std::uint32_t>(notes, data + 8, order_);
        const auto patch = number_at<std::uint32_t>(notes, data + 12, order_);
        if (patch) file_.abi = AbiVersion{*major, *minor, *patch};
        return {};
      }
      at = data + padded(*data_size);
    }
  }

  int fd_;
  const std::string& name_;
  std::string header_;
  const Layout* layout_ = &kLayout64;
  ByteOrder order_ = ByteOrder::kLittle;
  std::vector<Segment> segments_;
  ElfFile file_;
};

}  // namespace

Result<ElfFile> read_elf(int fd, const std::string& name) {
  return Reader(fd, name).read();
}

}  // namespace drover::driver
