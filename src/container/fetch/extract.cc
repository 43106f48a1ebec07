#include "container/fetch/extract.h"

#include <archive.h>
#include <archive_entry.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include "base/files.h"
#include "base/units.h"
#include "container/fetch/source.h"

namespace drover::container {
namespace {

constexpr std::size_t kBlock = 128 << 10;

using Archive = std::unique_ptr<archive, decltype([](archive* handle) { ::archive_read_free(handle); })>;

std::string said_by(archive* handle) {
  const char* said = ::archive_error_string(handle);
  return said != nullptr ? said : "it cannot be read";
}

Failure refusal(std::string message) {
  return fail(ErrorKind::kInvalid, std::move(message));
}

/// What may still come out of one archive.
class Allowance {
 public:
  Allowance(int file, const ExtractLimits& limits) : limits_(limits) {
    struct stat info{};
    const auto size = ::fstat(file, &info) == 0 ? static_cast<std::uint64_t>(info.st_size) : 0;
    bytes_ = std::min(limits.bytes, limits.free_bytes + std::min(size, limits.bytes) * limits.expansion);
  }

  Status entry() {
    if (++entries_ <= limits_.entries) return {};
    return fail(ErrorKind::kExhausted, fmt::format("it holds more than {} files", limits_.entries));
  }

  Status take(std::uint64_t end_of_file, std::uint64_t& counted) {
    const auto more = end_of_file > counted ? end_of_file - counted : 0;
    counted = std::max(counted, end_of_file);
    if (more > bytes_)
      return fail(ErrorKind::kExhausted, "it grows without measure when it is unpacked",
                  "unpack it in the task itself if it is really meant so");
    bytes_ -= more;
    return {};
  }

 private:
  const ExtractLimits& limits_;
  std::uint64_t bytes_;
  std::uint64_t entries_ = 0;
};

Status write_at(int file, std::string_view bytes, la_int64_t offset, const std::string& name) {
  while (!bytes.empty()) {
    const auto count = ::pwrite(file, bytes.data(), bytes.size(), offset);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return fail_errno(fmt::format("Failed to write '{}'", name), errno);
    bytes.remove_prefix(static_cast<std::size_t>(count));
    offset += count;
  }
  return {};
}

Status fill(archive* input, int file, const std::string& name, Allowance& allowance) {
  std::uint64_t counted = 0;
  while (true) {
    const void* bytes = nullptr;
    std::size_t size = 0;
    la_int64_t offset = 0;
    const int status = ::archive_read_data_block(input, &bytes, &size, &offset);
    if (status == ARCHIVE_EOF) break;
    if (status != ARCHIVE_OK && status != ARCHIVE_WARN) return refusal(said_by(input));
    if (offset < 0) return refusal(fmt::format("'{}' is damaged", name));
    DROVER_CHECK_OK(allowance.take(static_cast<std::uint64_t>(offset) + size, counted));
    DROVER_CHECK_OK(write_at(file, {static_cast<const char*>(bytes), size}, offset, name));
  }
  if (::ftruncate(file, static_cast<off_t>(counted)) != 0)
    return fail_errno(fmt::format("Failed to write '{}'", name), errno);
  return {};
}

Status add_file(archive* input, Tree& tree, const std::string& path, mode_t mode, Allowance& allowance) {
  DROVER_TRY(const auto file, tree.make(path, mode));
  if (auto filled = fill(input, file.fd.get(), path, allowance); !filled) {
    Tree::drop(file);
    return filled;
  }
  return tree.put(file);
}

Result<std::string> entry_path(const char* raw, std::string_view what) {
  if (raw == nullptr) return refusal("a name in it cannot be read");
  const auto path = inner_path(raw);
  if (!path) return refusal(fmt::format("{} '{}': {}", what, raw, path.error().message));
  return *path;
}

Status add_entry(archive* input, archive_entry* entry, Tree& tree, Allowance& allowance) {
  const char* raw = ::archive_entry_pathname(entry);
  const auto type = ::archive_entry_filetype(entry);
  const bool is_link = ::archive_entry_hardlink(entry) != nullptr;
  // "./" is how most archives begin.
  if (!is_link && type == AE_IFDIR && raw != nullptr &&
      std::string_view(raw).find_first_not_of("./") == std::string_view::npos &&
      std::string_view(raw).find("..") == std::string_view::npos && raw[0] != '/')
    return {};
  DROVER_TRY(const auto path, entry_path(raw, "its file"));
  if (is_link) {
    DROVER_TRY(const auto target, entry_path(::archive_entry_hardlink(entry), "its link to"));
    return tree.make_link(path, target);
  }
  const auto mode = static_cast<mode_t>((::archive_entry_perm(entry) & 0777U) | 0600U);
  if (type == AE_IFDIR) return tree.make_folder(path);
  if (type == AE_IFREG) return add_file(input, tree, path, mode, allowance);
  if (type == AE_IFLNK) {
    const char* target = ::archive_entry_symlink(entry);
    return tree.make_symlink(path, target != nullptr ? target : "");
  }
  return refusal(fmt::format("'{}' is a device or a pipe", path));
}

Result<Archive> open(int file, bool raw) {
  Archive input(::archive_read_new());
  ::archive_read_support_filter_gzip(input.get());
  if (raw) {
    ::archive_read_support_format_raw(input.get());
    ::archive_read_support_format_empty(input.get());
  } else {
    ::archive_read_support_filter_bzip2(input.get());
    ::archive_read_support_filter_xz(input.get());
    ::archive_read_support_filter_zstd(input.get());
    ::archive_read_support_format_tar(input.get());
    ::archive_read_support_format_zip(input.get());
  }
  if (::archive_read_open_fd(input.get(), file, kBlock) != ARCHIVE_OK) return refusal(said_by(input.get()));
  return input;
}

}  // namespace

Status extract_archive(int file, Tree& tree, const ExtractLimits& limits) {
  DROVER_TRY(const auto input, open(file, false));
  Allowance allowance(file, limits);
  while (true) {
    archive_entry* entry = nullptr;
    const int status = ::archive_read_next_header(input.get(), &entry);
    if (status == ARCHIVE_EOF) return {};
    if (status != ARCHIVE_OK && status != ARCHIVE_WARN) return refusal(said_by(input.get()));
    DROVER_CHECK_OK(allowance.entry());
    DROVER_CHECK_OK(add_entry(input.get(), entry, tree, allowance));
  }
}

Status extract_gzip(int file, Tree& tree, const std::string& path, const ExtractLimits& limits) {
  DROVER_TRY(const auto input, open(file, true));
  Allowance allowance(file, limits);
  archive_entry* entry = nullptr;
  const int status = ::archive_read_next_header(input.get(), &entry);
  if (status != ARCHIVE_OK && status != ARCHIVE_WARN && status != ARCHIVE_EOF)
    return refusal(said_by(input.get()));
  if (::archive_filter_count(input.get()) < 2) return refusal("it is not compressed with gzip");
  return add_file(input.get(), tree, path, 0644, allowance);
}

}  // namespace drover::container
