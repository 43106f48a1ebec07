#include "image/layers.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>

#include "base/units.h"
#include "image/digest.h"
#include "image/stream.h"
#include "image/tar.h"
#include "image/unpack.h"

namespace drover::image {
namespace {

constexpr std::string_view kPartialSuffix = ".partial";
constexpr std::string_view kDiscardedSuffix = ".discarded";
constexpr const char* kTree = "tree";

std::string partial_name(const std::string& hex) {
  return "." + hex + std::string(kPartialSuffix);
}

std::string proof_key(const LayerFile& layer, const ImageFile& file) {
  return fmt::format("{} {} {}", file.identity, layer.digest, layer.diff_id);
}

bool lock(int fd, int operation) {
  while (::flock(fd, operation) != 0)
    if (errno != EINTR) return false;
  return true;
}

bool is_discarded(const std::string& name) {
  return name.starts_with('.') && name.ends_with(kDiscardedSuffix);
}

/// Out of sight, until it is removed.
Status take_away(const Directory& folder, const std::string& hex) {
  const auto hidden = "." + hex + std::string(kDiscardedSuffix);
  DROVER_CHECK_OK(folder.remove_tree(hidden));
  if (::renameat(folder.fd(), hex.c_str(), folder.fd(), hidden.c_str()) == 0 || errno == ENOENT) return {};
  return fail_errno(fmt::format("Failed to remove layer '{}'", hex), errno);
}

/// What a tree takes on the disk; of what cannot be read, nothing.
std::uint64_t disk_usage(const std::string& path) {
  std::uint64_t blocks = 0;
  std::error_code error;
  for (std::filesystem::recursive_directory_iterator entry(path, error), end; !error && entry != end;
       entry.increment(error)) {
    struct stat info{};
    if (::lstat(entry->path().c_str(), &info) == 0 && (S_ISDIR(info.st_mode) || info.st_nlink == 1))
      blocks += static_cast<std::uint64_t>(info.st_blocks);
  }
  constexpr std::uint64_t kBlock = 512;  // stat(2)
  return blocks * kBlock;
}

Failure damaged(std::string_view which, const std::string& expected, const std::string& found) {
  return fail(ErrorKind::kInvalid,
              fmt::format("the layer is damaged: its {} should be {} and is {}", which, expected, found),
              "copy the image again");
}

/// A layer file on its way to its uncompressed tar, hashed on both sides.
class CheckedLayer {
 public:
  CheckedLayer(const LayerFile& layer, ByteStream& file, Allowance& allowance)
      : layer_(layer),
        stored_(file, [&](std::uint64_t) { return allowance.check(); }),
        packed_(stored_),
        whole_(layer.digest.empty() ? static_cast<ByteStream&>(stored_) : packed_),
        unpacked_(whole_),
        allowed_(unpacked_, [&](std::uint64_t bytes) { return allowance.take_bytes(bytes); }),
        plain_(allowed_) {}

  ByteStream& tar() { return plain_; }

  /// Reads both sides to their ends and compares. `so_far` is how unpacking went: a damaged file is the
  /// better explanation of what it may have stumbled over.
  Status finish(Status so_far) {
    if (so_far) so_far = drain(plain_);
    const bool refused = !so_far && so_far.error().kind != ErrorKind::kInvalid;
    if (refused) return so_far;
    DROVER_CHECK_OK(drain(whole_));
    const auto packed = layer_.digest.empty() ? "" : packed_.digest();
    if (packed != layer_.digest) return damaged("digest", layer_.digest, packed);
    DROVER_CHECK_OK(so_far);
    const auto plain = plain_.digest();
    if (plain != layer_.diff_id) return damaged("uncompressed digest (diff_id)", layer_.diff_id, plain);
    return {};
  }

 private:
  const LayerFile& layer_;
  GuardedStream stored_;
  HashingStream packed_;
  ByteStream& whole_;  ///< the file as it is stored, to its end
  DecompressedStream unpacked_;
  GuardedStream allowed_;
  HashingStream plain_;
};

Status check_size(const ImageFile& file, const UnpackLimits& limits) {
  if (file.size <= limits.bytes) return {};
  return fail(ErrorKind::kExhausted,
              fmt::format("it has {}, more than the {} that a layer may have", format_bytes(file.size),
                          format_bytes(limits.bytes)),
              "if it is honest, raise 'drover serve --max-image-size'");
}

}  // namespace

Result<Layers> Layers::open(Directory folder, const Directory& unsynced, Proofs proofs) {
  DROVER_TRY(auto same, Directory::open(folder.path()));
  const auto lost = [same = std::make_shared<Directory>(std::move(same))](const std::string& hex) {
    (void)take_away(*same, hex);
  };
  DROVER_TRY(auto sync, LateSync::open(unsynced, lost));
  DROVER_TRY(const auto doubtful, sync->doubtful());
  for (const auto& hex : doubtful) DROVER_CHECK_OK(take_away(folder, hex));
  DROVER_CHECK_OK(folder.sync());
  DROVER_CHECK_OK(sync->clear_doubtful());
  DROVER_TRY(const auto unfinished, sync->unfinished());
  for (const auto& hex : unfinished)
    if (folder.exists(hex)) sync->add(hex);
  DROVER_TRY(const auto names, folder.list());
  for (const auto& name : names) {
    if (is_discarded(name)) DROVER_CHECK_OK(folder.remove_tree(name));
    if (!name.starts_with('.') || !name.ends_with(kPartialSuffix)) continue;
    const auto partial = folder.subdirectory(name);
    if (partial && lock(partial->fd(), LOCK_EX | LOCK_NB)) DROVER_CHECK_OK(folder.remove_tree(name));
  }
  return Layers(std::move(folder), std::move(sync), std::move(proofs));
}

bool Layers::is_ready(const LayerFile& layer, const ImageFile& file) const {
  const auto hex = digest_hex(layer.diff_id);
  return hex && !file.identity.empty() && folder_.exists(*hex) && proofs_.contains(proof_key(layer, file));
}

Result<std::string> Layers::acquire(const LayerFile& layer, const ImageFile& file,
                                    Allowance& allowance) const {
  DROVER_TRY(const auto hex, digest_hex(layer.diff_id));
  if (!is_ready(layer, file)) {
    DROVER_CHECK_OK(check_size(file, allowance.limits()));
    DROVER_CHECK_OK(folder_.exists(hex) ? check(layer, file, allowance) : add(layer, file, hex, allowance));
    if (!file.identity.empty()) proofs_.add(proof_key(layer, file));
  }
  return folder_.path() + "/" + hex;
}

std::optional<std::string> Layers::find(const std::string& diff_id) const {
  const auto hex = digest_hex(diff_id);
  if (!hex || !folder_.exists(*hex)) return std::nullopt;
  return folder_.path() + "/" + *hex;
}

Result<std::vector<std::string>> Layers::list() const {
  DROVER_TRY(const auto names, folder_.list());
  std::vector<std::string> diff_ids;
  for (const auto& name : names)
    if (auto diff_id = "sha256:" + name; digest_hex(diff_id)) diff_ids.push_back(std::move(diff_id));
  return diff_ids;
}

Status Layers::discard(const std::string& diff_id) const {
  DROVER_TRY(const auto hex, digest_hex(diff_id));
  sync_->forget(hex);
  return take_away(folder_, hex);
}

Result<std::uint64_t> Layers::clear_discarded() const {
  DROVER_TRY(const auto names, folder_.list());
  std::uint64_t freed = 0;
  for (const auto& name : names) {
    if (!is_discarded(name)) continue;
    freed += disk_usage(folder_.path() + "/" + name);
    DROVER_CHECK_OK(folder_.remove_tree(name));
  }
  return freed;
}

Status Layers::check(const LayerFile& layer, const ImageFile& file, Allowance& allowance) const {
  CheckedLayer checked(layer, *file.stream, allowance);
  return checked.finish({});
}

/// Creates the folder for a half-done layer, or waits until nobody works in it any more.
Result<Directory> Layers::lock_partial(const std::string& name) const {
  while (true) {
    auto partial = folder_.make_subdirectory(name, 0700);
    if (!partial && partial.error().kind == ErrorKind::kNotFound)
      continue;  // its holder was just done with it
    if (!partial) return partial;
    if (!lock(partial->fd(), LOCK_EX))
      return fail_errno(fmt::format("Failed to lock '{}'", partial->path()), errno);
    struct stat locked{};
    struct stat there{};
    const bool same = ::fstat(partial->fd(), &locked) == 0 &&
                      ::fstatat(folder_.fd(), name.c_str(), &there, AT_SYMLINK_NOFOLLOW) == 0 &&
                      locked.st_ino == there.st_ino;
    if (same) return partial;
  }
}

Status Layers::add(const LayerFile& layer, const ImageFile& file, const std::string& hex,
                   Allowance& allowance) const {
  const auto name = partial_name(hex);
  DROVER_TRY(const auto partial, lock_partial(name));
  auto done =
      folder_.exists(hex) ? check(layer, file, allowance) : unpack(layer, file, partial, hex, allowance);
  auto removed = folder_.remove_tree(name);
  return done ? removed : done;
}

Status Layers::unpack(const LayerFile& layer, const ImageFile& file, const Directory& partial,
                      const std::string& hex, Allowance& allowance) const {
  DROVER_CHECK_OK(partial.remove_tree(kTree));  // left by a crash since open()
  DROVER_TRY(const auto tree, partial.make_subdirectory(kTree, 0755));
  DROVER_CHECK_OK(sync_->announce(hex));
  CheckedLayer checked(layer, *file.stream, allowance);
  auto done = checked.finish(unpack_layer(checked.tar(), tree, allowance));
  if (done && ::renameat(partial.fd(), kTree, folder_.fd(), hex.c_str()) != 0)
    done = fail_errno(fmt::format("Failed to write '{}/{}'", folder_.path(), hex), errno);
  if (done)
    sync_->add(hex);
  else
    sync_->withdraw(hex);
  return done;
}

}  // namespace drover::image
