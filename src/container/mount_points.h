#pragma once

// Where things are mounted in a container's root file system: found by descriptor, below that root whatever
// links say, and made where they are missing. Made as root only in the root's own file system, which vanishes
// with the container; in what is mounted in it (the sandbox, a volume: the host's own files) with the rights
// of the task's user. Used in the shim's mount namespace, before anything of the task runs. Not thread safe.

#include <cstdint>
#include <string>

#include "base/fd.h"
#include "base/result.h"
#include "base/users.h"
#include "container/id_map.h"

namespace drover::container {

enum class PlaceKind { kFolder, kFile };

class MountPoints {
 public:
  /// What may be made in the root's own file system.
  enum class Root {
    kThrownAway,  ///< anything: it is the writable layer of an image
    kHost,        ///< nothing
    kVolume,      ///< nothing, and no link leads out: it is only a part of what the container sees
  };

  /// `root` is where the root file system is mounted, by a trusted path. What is made in its own file system
  /// belongs to `owner`, who is root there: not 0 where root of the container is not the machine's.
  static Result<MountPoints> open(const std::string& root, Root kind, uid_t owner = 0);

  /// `name` at the top of the root becomes a folder if it is none, whatever an image had put there.
  Status make_real_folder(const std::string& name) const;
  /// For what Drover mounts itself.
  Result<UniqueFd> own(const std::string& destination, PlaceKind kind) const;
  /// For what the user has mounted. On the host it is found with his rights; there, `make` lets it be made
  /// with them.
  Result<UniqueFd> users(const std::string& destination, PlaceKind kind, const User& user, bool make) const;

  /// Mounts the detached tree there.
  static Status attach(int tree, int place, const std::string& destination);

 private:
  MountPoints(UniqueFd root, Root kind, uid_t owner) : root_(std::move(root)), kind_(kind), owner_(owner) {}

  UniqueFd root_;
  Root kind_;
  uid_t owner_;
};

/// A copy of the mounts at an open file or folder, mounted nowhere yet, with the attributes of
/// mount_setattr(2) set; its files belong to whom they belong in the user namespace, if one is given. An
/// Error names errno alone.
Result<UniqueFd> copy_of_mount(int fd, bool recursive, std::uint64_t set, const UserNamespace* ids = nullptr);

}  // namespace drover::container
