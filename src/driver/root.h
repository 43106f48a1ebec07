#pragma once

// A folder that is taken for a whole file system: "/", or a driver root such as the mount of a driver
// container. Every path is resolved as a process chrooted there would (openat2 with RESOLVE_IN_ROOT), so
// absolute symbolic links and ".." stay inside. Thread safe: no state but the descriptor.

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace drover::driver {

/// A regular file, opened for reading.
struct RootFile {
  UniqueFd fd;
  std::string path;  ///< inside the root, without symbolic links: "/usr/lib64/libcuda.so.535.216.03"
};

class Root {
 public:
  static Result<Root> open(const std::string& path);

  const std::string& path() const { return path_; }
  /// kInvalid when it is there and no regular file.
  Result<RootFile> open_file(const std::string& path) const;
  /// Whether the path itself is a symbolic link, wherever that leads.
  bool is_link(const std::string& path) const;
  /// Entry names, sorted; empty when there is no such folder.
  std::vector<std::string> list(const std::string& folder) const;

 private:
  Root(UniqueFd fd, std::string path, std::string real_path)
      : fd_(std::move(fd)), path_(std::move(path)), real_path_(std::move(real_path)) {}

  UniqueFd fd_;
  std::string path_;       // as given: for messages
  std::string real_path_;  // without symbolic links and the closing slash
};

/// openat2 below `root` as a process chrooted there would resolve the path; invalid with errno when it fails.
/// `resolve`: further RESOLVE_ flags.
UniqueFd open_in_root(int root, const std::string& path, int flags, mode_t mode = 0,
                      std::uint64_t resolve = 0);

}  // namespace drover::driver
