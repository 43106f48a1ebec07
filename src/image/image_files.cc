#include "image/image_files.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <optional>
#include <vector>

#include "image/entry_path.h"
#include "image/tar.h"
#include "image/text.h"

namespace drover::image {
namespace {

constexpr std::uint64_t kMaxMembers = 100'000;
constexpr int kMaxLinks = 8;

/// Content of one member; owns the whole chain below it.
class MemberStream : public ByteStream {
 public:
  explicit MemberStream(FileStream file) : file_(std::move(file)), reader_(file_) {}

  Status go_to(std::uint64_t index) {
    for (std::uint64_t passed = 0; passed <= index; ++passed) {
      DROVER_TRY(const auto entry, reader_.next());
      if (!entry) return fail(ErrorKind::kConflict, "the archive changed while it was read");
    }
    return {};
  }

  Result<std::string_view> next() override {
    DROVER_TRY(const auto block, reader_.block());
    if (!block.bytes.empty() && block.offset != position_)
      return fail(ErrorKind::kInvalid,
                  "the archive stores a file with holes, which image archives do not have");
    position_ += block.bytes.size();
    return block.bytes;
  }

 private:
  FileStream file_;
  TarReader reader_;
  std::uint64_t position_ = 0;
};

/// By the first bytes of gzip (RFC 1952) and zstd (RFC 8878).
bool is_compressed(int fd) {
  std::array<char, 4> magic{};
  if (::pread(fd, magic.data(), magic.size(), 0) != static_cast<ssize_t>(magic.size())) return false;
  const std::string_view seen(magic.data(), magic.size());
  return seen.starts_with("\x1f\x8b") || seen == "\x28\xb5\x2f\xfd";
}

/// Where the link of `member` leads, as a path inside the archive; nullopt when it leads out.
std::optional<std::string> link_target(const std::string& member, const TarEntry& entry) {
  if (entry.link_target.starts_with('/')) return std::nullopt;
  std::vector<std::string> parts;
  if (entry.type == TarEntry::Type::kSymlink) {
    parts = path_parts(member);
    parts.pop_back();
  }
  for (auto& part : path_parts(entry.link_target)) {
    if (part.empty() || part == ".") continue;
    if (part != "..") {
      parts.push_back(std::move(part));
    } else {
      if (parts.empty()) return std::nullopt;
      parts.pop_back();
    }
  }
  return fmt::format("{}", fmt::join(parts, "/"));
}

}  // namespace

Result<std::string> ImageFiles::read(const std::string& name, std::uint64_t limit) const {
  DROVER_TRY(const auto file, open(name));
  return read_whole(*file.stream, name, limit);
}

Result<std::unique_ptr<FolderFiles>> FolderFiles::open_folder(const Reader& reader, const std::string& path) {
  DROVER_TRY(auto folder, reader.open_folder(path));
  return std::unique_ptr<FolderFiles>(new FolderFiles(reader, std::move(folder)));
}

Result<ImageFile> FolderFiles::open(const std::string& name) const {
  DROVER_TRY(auto file, reader_.open_file(folder_.get(), name));
  return ImageFile{std::make_unique<FileStream>(std::move(file.fd), name, file.size), file.size,
                   std::move(file.identity)};
}

bool FolderFiles::contains(const std::string& name) const {
  return reader_.open_file(folder_.get(), name).has_value();
}

Result<std::unique_ptr<TarFiles>> TarFiles::open_archive(const Reader& reader, const std::string& path) {
  DROVER_TRY(auto file, reader.open_file(AT_FDCWD, path));
  if (is_compressed(file.fd.get()))
    return fail(ErrorKind::kUnsupported, fmt::format("'{}' is compressed", printable(path)),
                "unpack it once with 'gunzip' or 'zstd -d': every start would have to read all of it");
  std::unique_ptr<TarFiles> files(new TarFiles(std::move(file), path));
  if (auto scanned = files->scan(); !scanned)
    return Failure(context(scanned.error(), fmt::format("'{}' is not an image archive", printable(path))));
  return files;
}

Result<FileStream> TarFiles::stream() const {
  UniqueFd fd(::fcntl(file_.fd.get(), F_DUPFD_CLOEXEC, 0));
  if (!fd.valid()) return fail_errno(fmt::format("Failed to open '{}'", printable(path_)), errno);
  return FileStream(std::move(fd), path_, file_.size);
}

Status TarFiles::scan() {
  DROVER_TRY(auto input, stream());
  TarReader reader(input);
  for (std::uint64_t index = 0;; ++index) {
    DROVER_TRY(const auto entry, reader.next());
    if (!entry) return {};
    if (index == kMaxMembers)
      return fail(ErrorKind::kInvalid, fmt::format("it has more than {} entries", kMaxMembers));
    DROVER_TRY(const auto name, entry_path(entry->path));
    if (name.empty() || entry->type == TarEntry::Type::kDirectory) continue;
    Member member{index, entry->size, ""};
    if (entry->type == TarEntry::Type::kSymlink || entry->type == TarEntry::Type::kHardLink) {
      const auto target = link_target(name, *entry);
      if (!target)
        return fail(ErrorKind::kInvalid,
                    fmt::format("entry '{}' is a link that leads out of the archive", printable(name)));
      member.link = *target;
    } else if (entry->type != TarEntry::Type::kFile) {
      return fail(ErrorKind::kInvalid, fmt::format("entry '{}' is neither file nor folder", printable(name)));
    }
    members_[name] = std::move(member);
  }
}

Result<ImageFile> TarFiles::open(const std::string& name) const {
  auto found = members_.find(name);
  for (int links = 0; found != members_.end() && !found->second.link.empty(); ++links) {
    if (links == kMaxLinks)
      return fail(ErrorKind::kInvalid, fmt::format("'{}' is a circle of links", printable(name)));
    found = members_.find(found->second.link);
  }
  if (found == members_.end())
    return fail(ErrorKind::kInvalid, fmt::format("the archive has no file '{}'", printable(name)));
  DROVER_TRY(auto input, stream());
  auto member = std::make_unique<MemberStream>(std::move(input));
  DROVER_CHECK_OK(member->go_to(found->second.index));
  auto identity = file_.identity.empty() ? "" : fmt::format("{}/{}", file_.identity, found->first);
  return ImageFile{std::move(member), found->second.size, std::move(identity)};
}

}  // namespace drover::image
