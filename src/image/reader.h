#pragma once

// Opens files with the rights of a user, from a thread of root's daemon: nobody reads through the daemon what
// he could not read himself. Only the calling thread changes its identity (fsuid, fsgid, supplementary groups
// are per thread in the kernel), only for the one system call, and it takes the file capabilities off the
// thread for that time (capabilities(7), "Effect of user ID changes"). What was opened stays readable
// afterwards. A daemon that is not root opens files of its own user only. Thread safe.

#include <sys/stat.h>

#include <cstdint>
#include <string>

#include "base/fd.h"
#include "base/result.h"
#include "base/users.h"

namespace drover::image {

struct OpenFile {
  UniqueFd fd;
  std::uint64_t size = 0;
  /// Names this state of this file: device, inode, size and both times. "" where the file system could lie
  /// (FUSE).
  std::string identity;
};

class Reader {
 public:
  explicit Reader(User user) : user_(std::move(user)) {}

  /// A folder that the user may search, as O_PATH.
  Result<UniqueFd> open_folder(const std::string& path) const;
  /// A regular file that the user may read. Below `folder` when that is not AT_FDCWD; symbolic links are
  /// followed wherever the user may follow them, magic links of /proc never.
  Result<OpenFile> open_file(int folder, const std::string& path) const;
  /// Whether a folder or a regular file lies there; anything else is refused.
  Result<bool> is_folder(const std::string& path) const;

 private:
  Result<UniqueFd> open(int folder, const std::string& path, int flags, std::string_view what) const;
  User user_;
};

}  // namespace drover::image
