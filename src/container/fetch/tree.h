#pragma once

// A folder that untrusted paths are written into. No path leaves it, and nothing is written through a
// symbolic link, whoever put it there: folders are walked one by one by descriptor. The files become the
// calling process's own. Not thread safe.

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"

namespace drover::container {

class Tree {
 public:
  /// Whom what is made belongs to; none: the calling process.
  struct Owner {
    uid_t uid = 0;
    gid_t gid = 0;
  };

  /// `root` is a directory descriptor that outlives the tree.
  explicit Tree(int root, std::optional<Owner> owner = std::nullopt) : root_(root), owner_(owner) {}

  // Paths come from inner_path(). Folders on the way are made. What is in the way of a file or a link is
  // replaced; a folder in its way is a mistake.

  /// A new file of a name of its own beside `path`, to be filled and then given to put().
  struct NewFile {
    UniqueFd fd;
    UniqueFd folder;
    std::string temporary;
    std::string name;
  };
  Result<NewFile> make(const std::string& path, mode_t mode);
  /// Gives it its name. A file that is not put is removed by drop().
  Status put(const NewFile& file);
  static void drop(const NewFile& file);

  Status make_folder(const std::string& path);
  /// An empty file, unless there is a file already.
  Status make_empty(const std::string& path);
  Status make_symlink(const std::string& path, const std::string& target);
  /// `target` is a file that is already there.
  Status make_link(const std::string& path, const std::string& target);

 private:
  struct Place {
    UniqueFd folder;
    std::string name;
  };
  enum class Missing { kMake, kRefuse };
  Result<UniqueFd> walk(std::string_view folders, Missing missing) const;
  Result<Place> place(const std::string& path, Missing missing) const;

  int root_;
  std::optional<Owner> owner_;
};

}  // namespace drover::container
