#pragma once

// The blobs of the images that were pulled: the folders of one OCI layout (image-spec, image-layout.md).
//
//   blobs/sha256/<hex>     whole, and checked when they came; whoever reads one checks it again
//   partial/<hex>.<scope>  on the way; a later download goes on with it
//   facts/<hex>.<scope>    empty: who has brought this blob here, and so may use it
//   facts/<hex>=<hex>      empty: a layer, and the diff_id that it was found to have
//
// A digest is no secret: that a blob is here is no reason to give it to somebody who only names it. A scope
// is "all" for what was handed out to somebody without credentials, or else a user's number.
//
// Blobs are not made durable one by one: a machine that goes down may leave damaged ones, which are noticed
// when they are read, and then come again. Thread safe. Blocks.

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/files.h"
#include "base/result.h"
#include "image/document.h"
#include "image/image_files.h"

namespace drover::image {

inline constexpr const char* kEverybody = "all";

/// "all", or the user's number.
std::string scope_of(bool everybody, uid_t uid);

class Blobs {
 public:
  /// Nobody else may have it open.
  static Result<Blobs> open(const Directory& layout);

  bool contains(const std::string& digest) const;
  /// Whether the user, or somebody without credentials, has brought it.
  bool may_use(const std::string& digest, uid_t uid) const;
  void allow(const std::string& digest, const std::string& scope) const;
  bool is_known_as(const std::string& digest, const std::string& diff_id) const;
  void note_known_as(const std::string& digest, const std::string& diff_id) const;

  /// A descriptor of the folder that they are in.
  int folder() const { return whole_.fd(); }
  /// The whole layout, for reading images out of it.
  Result<std::unique_ptr<FolderFiles>> files() const;
  /// A document whose digest was checked.
  Status add(const std::string& digest, std::string_view text) const;

  struct Partial {
    UniqueFd file;  ///< for reading and writing
    std::string name;
    std::uint64_t size = 0;
  };
  /// What there is of it. The caller sees to it that nobody else has it open.
  Result<Partial> open_partial(const std::string& digest, const std::string& scope) const;
  /// It is whole, and right.
  Status finish(const Partial& partial, const std::string& digest, const std::string& scope) const;
  void drop(const Partial& partial) const;

  /// Digests of all that is here.
  Result<std::vector<std::string>> list() const;
  Result<std::uint64_t> size(const std::string& digest) const;
  /// Whether its content is what its name says. Reads all of it.
  Result<bool> is_sound(const std::string& digest) const;
  /// With all facts about it.
  Status remove(const std::string& digest) const;
  /// What was begun and is not wanted any more; returns the bytes that it took.
  Result<std::uint64_t> remove_partial(const std::string& name) const;
  Result<std::vector<std::string>> list_partial() const { return partial_.list(); }

 private:
  Blobs(Directory layout, Directory whole, Directory partial, Directory facts)
      : layout_(std::move(layout)),
        whole_(std::move(whole)),
        partial_(std::move(partial)),
        facts_(std::move(facts)) {}
  void note(const std::string& name) const;

  Directory layout_;
  Directory whole_;
  Directory partial_;
  Directory facts_;
};

}  // namespace drover::image
