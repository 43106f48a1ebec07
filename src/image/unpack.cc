#include "image/unpack.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "base/units.h"
#include "image/entry_path.h"
#include "image/layer_tree.h"
#include "image/tar.h"
#include "image/text.h"

namespace drover::image {
namespace {

/// Looks at the free space now and then: a layer that explodes stops before the disk is full.
class SpaceWatch {
 public:
  SpaceWatch(const Directory& target, const UnpackLimits& limits) : target_(target), limits_(limits) {}

  /// So many bytes are about to be written.
  Status note(std::uint64_t bytes) {
    since_check_ += bytes;
    if (since_check_ < kInterval) return {};
    since_check_ = 0;
    return check_space();
  }

 private:
  static constexpr std::uint64_t kInterval = 4 << 20;

  Status check_space() const {
    constexpr const char* kRemedy =
        "free some space on that file system, or give 'drover serve' another --state folder";
    struct statvfs info{};
    if (::fstatvfs(target_.fd(), &info) != 0)
      return fail_errno(fmt::format("Failed to look at the file system of '{}'", target_.path()), errno);
    if (static_cast<std::uint64_t>(info.f_bavail) * info.f_frsize < limits_.reserved_space)
      return fail(ErrorKind::kExhausted,
                  fmt::format("less than {} are free where images are unpacked",
                              format_bytes(limits_.reserved_space)),
                  kRemedy);
    if (info.f_files != 0 && info.f_favail < limits_.reserved_files)
      return fail(ErrorKind::kExhausted,
                  fmt::format("there is room for less than {} more files where images are unpacked",
                              limits_.reserved_files),
                  kRemedy);
    return {};
  }

  const Directory& target_;
  const UnpackLimits& limits_;
  std::uint64_t since_check_ = kInterval;  ///< so the first check comes first
};

Failure refuse(const TarEntry& entry, std::string_view why, std::string hint = "") {
  return fail(ErrorKind::kInvalid, fmt::format("entry '{}' {}", printable(entry.path), why), std::move(hint));
}

Status add_entry(LayerTree& tree, const std::string& path, const TarEntry& entry, TarReader& reader) {
  if (path.empty() && entry.type != TarEntry::Type::kDirectory)
    return refuse(entry, "would replace the root folder");
  switch (entry.type) {
    case TarEntry::Type::kDirectory:
      return tree.add_directory(path, entry);
    case TarEntry::Type::kFile:
      return tree.add_file(path, entry, reader);
    case TarEntry::Type::kSymlink:
      return tree.add_symlink(path, entry);
    case TarEntry::Type::kFifo:
      return tree.add_fifo(path, entry);
    case TarEntry::Type::kHardLink: {
      auto target = entry_path(entry.link_target);
      if (!target) return Failure(context(target.error(), fmt::format("hard link '{}'", printable(path))));
      return tree.add_hard_link(path, *target);
    }
    case TarEntry::Type::kDevice:
      return refuse(entry, "is a device node", "images bring no devices: build it without what is in /dev");
    case TarEntry::Type::kUnknown:
      break;
  }
  return refuse(entry, "is of a type that layers do not have");
}

Status apply(LayerTree& tree, const TarEntry& entry, TarReader& reader) {
  DROVER_TRY(const auto path, entry_path(entry.path));
  DROVER_TRY(const auto marker, marker_of(path));
  const auto slash = path.rfind('/');
  const auto folder = slash == std::string::npos ? "" : path.substr(0, slash);
  switch (marker.kind) {
    case Marker::Kind::kIgnored:
      return {};
    case Marker::Kind::kOpaque:
      return tree.make_opaque(folder);
    case Marker::Kind::kWhiteout:
      return tree.add_whiteout(folder.empty() ? marker.name : folder + "/" + marker.name);
    case Marker::Kind::kNone:
      break;
  }
  return add_entry(tree, path, entry, reader);
}

}  // namespace

Status unpack_layer(ByteStream& tar, const Directory& target, Allowance& allowance) {
  constexpr std::uint64_t kEntry = 4096;  // an empty file, too, takes about a block
  // A layer that does not list its root gets the one that every image has.
  if (::fchmod(target.fd(), 0755) != 0)
    return fail_errno(fmt::format("Failed to write '{}'", target.path()), errno);
  SpaceWatch space(target, allowance.limits());
  GuardedStream guarded(tar, [&](std::uint64_t bytes) { return space.note(bytes); });
  TarReader reader(guarded);
  LayerTree tree(target);
  while (true) {
    DROVER_TRY(const auto entry, reader.next());
    if (!entry) return tree.finish();
    DROVER_CHECK_OK(allowance.take_entry());
    DROVER_CHECK_OK(space.note(kEntry));
    if (entry->size > allowance.limits().bytes)
      return refuse(*entry, fmt::format("is larger than {}", format_bytes(allowance.limits().bytes)));
    DROVER_CHECK_OK(apply(tree, *entry, reader));
  }
}

}  // namespace drover::image
