#pragma once

// The folder that a layer is unpacked into. Every path is resolved below it with openat2(2): a symbolic link
// may lead a path elsewhere inside, never out. A refusal is an Error of kInvalid that names the path; what
// the file system says no to (a full disk) keeps its own kind. The folder must be out of reach of other
// users. Not thread safe.

#include <sys/stat.h>

#include <map>
#include <string>

#include "base/fd.h"
#include "base/files.h"
#include "base/result.h"
#include "image/tar.h"

namespace drover::image {

/// What overlayfs takes for "not there": it hides what lower layers have of that name.
bool is_whiteout(const struct stat& info);

class LayerTree {
 public:
  /// What is remembered of folders: bytes of memory.
  static constexpr std::size_t kMostRemembered = 128 << 20;

  /// `root` must outlive the tree.
  explicit LayerTree(const Directory& root, std::size_t most_remembered = kMostRemembered)
      : root_(root), most_remembered_(most_remembered) {}

  // Paths come from entry_path(). What is in the way of a new entry is replaced, as tar does; a folder over a
  // folder keeps what is in it. Folders that a path needs and the layer does not list are made: root's, 0755.
  Status add_directory(const std::string& path, const TarEntry& entry);
  /// Content is pulled from `reader`, whose current entry is `entry`.
  Status add_file(const std::string& path, const TarEntry& entry, TarReader& reader);
  Status add_symlink(const std::string& path, const TarEntry& entry);
  /// `target` must be a file, link or fifo that this layer has already brought.
  Status add_hard_link(const std::string& path, const std::string& target);
  Status add_fifo(const std::string& path, const TarEntry& entry);
  /// Hides `path` of the layers below, as overlayfs has it: a character device 0:0. What this layer itself
  /// brings at `path` stays.
  Status add_whiteout(const std::string& path);
  /// Hides everything that the layers below have in the folder `path`.
  Status make_opaque(const std::string& path);
  /// Gives the folders their times, which filling them has changed. Call it once, at the end.
  Status finish();

 private:
  /// Where an entry goes: an open parent, the last name, and the path with all symbolic links resolved.
  struct Place {
    UniqueFd parent;
    std::string name;
    std::string real_path;
  };

  Result<Place> place(const std::string& path);
  Result<UniqueFd> make_parent(const std::string& path);
  Status make_folder(int parent, const std::string& name, const std::string& shown);
  Result<std::string> real_path(int folder, const std::string& shown) const;
  Status remember_time(const std::string& real_path, const timespec& modified);
  /// Removes what stands at `place`, whatever it is.
  Status clear(const Place& place);

  const Directory& root_;
  const std::size_t most_remembered_;
  std::map<std::string, timespec> folder_times_;  ///< by real path
  std::size_t remembered_ = 0;                    ///< bytes that these take, at most
};

}  // namespace drover::image
