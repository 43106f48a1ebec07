#pragma once

// The root file system of a container that is being made, as a hook of its OCI runtime finds it. Everything
// in it comes from an image, which may be hostile: every path is resolved as a process chrooted there would,
// so no symbolic link leads out, and nothing is written through a mount: what is mounted belongs to somebody
// else. Nothing in it is executed.

#include <sys/stat.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"

namespace drover::driver {

class ContainerRoot {
 public:
  static Result<ContainerRoot> open(const std::string& path);
  /// The one that the runtime tells of on the hook's standard input: the state of an OCI container, whose
  /// bundle names the root.
  static Result<ContainerRoot> of_state(std::string_view state);

  /// Whether a process of the container finds this file of the host's at the path, whatever leads there.
  /// Nothing is opened for reading: what lies there may be anything.
  bool has(const struct stat& file, const std::string& path) const;
  /// A regular file, also one that is mounted there; nullopt when there is none.
  std::optional<UniqueFd> open_file(const std::string& path) const;
  /// Makes the folders above as needed. Replaces an older file or link. kUnsupported where something is
  /// mounted.
  Status put_link(const std::string& path, const std::string& target) const;
  Status put_file(const std::string& path, std::string_view content) const;

 private:
  explicit ContainerRoot(UniqueFd fd) : fd_(std::move(fd)) {}
  Result<UniqueFd> make_folder(const std::string& path, int depth = 0) const;
  Result<UniqueFd> free_place(const std::string& path) const;

  UniqueFd fd_;
};

}  // namespace drover::driver
