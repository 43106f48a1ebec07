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

/// Passes bytes on and looks at the free space now and then: a layer that explodes stops before the disk is
/// full.
class SpaceGuard : public ByteStream {
 public:
  SpaceGuard(ByteStream& inner, const Directory& target, std::uint64_t reserved)
      : inner_(inner), target_(target), reserved_(reserved) {}

  Result<std::string_view> next() override {
    constexpr std::uint64_t kInterval = 16 << 20;
    if (since_look_ >= kInterval || !looked_) DROVER_CHECK_OK(look());
    DROVER_TRY(const auto bytes, inner_.next());
    since_look_ += bytes.size();
    return bytes;
  }

 private:
  Status look() {
    looked_ = true;
    since_look_ = 0;
    struct statvfs info{};
    if (::fstatvfs(target_.fd(), &info) != 0)
      return fail_errno(fmt::format("Failed to look at the file system of '{}'", target_.path()), errno);
    if (static_cast<std::uint64_t>(info.f_bavail) * info.f_frsize >= reserved_) return {};
    return fail(ErrorKind::kExhausted,
                fmt::format("less than {} are free where images are unpacked", format_bytes(reserved_)),
                "free some space on that file system, or give 'drover serve' another --state folder");
  }

  ByteStream& inner_;
  const Directory& target_;
  std::uint64_t reserved_;
  std::uint64_t since_look_ = 0;
  bool looked_ = false;
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

Status unpack_layer(ByteStream& tar, const Directory& target, const UnpackLimits& limits) {
  // A layer that does not list its root gets the one that every image has.
  if (::fchmod(target.fd(), 0755) != 0)
    return fail_errno(fmt::format("Failed to write '{}'", target.path()), errno);
  SpaceGuard guarded(tar, target, limits.reserved_space);
  TarReader reader(guarded);
  LayerTree tree(target);
  for (std::uint64_t count = 0;; ++count) {
    DROVER_TRY(const auto entry, reader.next());
    if (!entry) return tree.finish();
    if (count == limits.entries)
      return fail(ErrorKind::kInvalid, fmt::format("it has more than {} entries", limits.entries));
    if (entry->size > limits.bytes)
      return refuse(*entry, fmt::format("is larger than {}", format_bytes(limits.bytes)));
    DROVER_CHECK_OK(apply(tree, *entry, reader));
  }
}

}  // namespace drover::image
