#pragma once

// Files by directory descriptor. Paths below a Directory are resolved with openat2(2) and may not leave it:
// `..` and absolute symbolic links are refused (RESOLVE_BENEATH), so a tenant who owns the tree cannot lead
// us astray. Everything written is whole or absent: temporary file, fsync, rename, fsync of the directory.
// Thread safe: no state but the descriptor.

#include <sys/stat.h>
#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace drover {

inline constexpr std::uint64_t kMaxTextFile = 16ULL << 20;

/// Whether symbolic links inside the tree may be followed (they never lead out of it).
enum class Links { kFollowInside, kRefuse };

class Directory {
 public:
  /// Opens an existing directory by an ordinary, trusted path.
  static Result<Directory> open(const std::string& path);
  /// Creates it and its parents (mode applies to what is created), then opens it.
  static Result<Directory> create(const std::string& path, mode_t mode = 0755);

  int fd() const { return fd_.get(); }
  /// The path it was opened by: for messages and for programs that take paths.
  const std::string& path() const { return path_; }

  Result<Directory> subdirectory(const std::string& name, Links links = Links::kRefuse) const;
  Result<Directory> make_subdirectory(const std::string& name, mode_t mode = 0755) const;
  Result<UniqueFd> open_file(const std::string& name, int flags, mode_t mode = 0,
                             Links links = Links::kRefuse) const;
  /// Refuses files larger than `limit` bytes.
  Result<std::string> read(const std::string& name, std::uint64_t limit = kMaxTextFile) const;
  /// Replaces `name` atomically and durably.
  Status write(const std::string& name, std::string_view content, mode_t mode = 0644) const;
  bool exists(const std::string& name) const;
  /// Entry names without "." and "..", sorted.
  Result<std::vector<std::string>> list() const;
  /// Removes a file or a whole tree without following links or crossing into other mounts. Absent is fine.
  Status remove_tree(const std::string& name) const;
  /// Removes what writes of files whose names begin so have left when their process was killed: nothing but
  /// files with such names, and nothing of a folder that others than its owner can write to. Nobody may be
  /// writing them.
  Status remove_unfinished(std::string_view prefix) const;
  /// Makes renames and creations in this directory durable.
  Status sync() const;

 private:
  Directory(UniqueFd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}
  UniqueFd fd_;
  std::string path_;
};

/// Reads a file by a trusted path; refuses files larger than `limit` bytes.
Result<std::string> read_file(const std::string& path, std::uint64_t limit = kMaxTextFile);
/// Reads what an open descriptor holds from its start; refuses more than `limit` bytes.
Result<std::string> read_all(int fd, const std::string& name, std::uint64_t limit = kMaxTextFile);
Status write_all(int fd, std::string_view content, const std::string& name);
/// Replaces a file by a trusted path, atomically and durably.
Status write_file(const std::string& path, std::string_view content, mode_t mode = 0644);
/// "/proc/self/fd/N": for programs that take a path where we hold a descriptor.
std::string descriptor_path(int fd);
/// What everybody together may still write to the file system of a trusted path, in bytes: none when no file
/// can be made any more, however small; UINT64_MAX when it does not tell.
std::uint64_t free_space(const std::string& folder);
/// The size of that file system in bytes; 0 when it does not tell.
std::uint64_t disk_size(const std::string& folder);
/// The running program's own file, and the directory that it lies in.
Result<std::string> executable_path();
Result<std::string> executable_directory();

}  // namespace drover
