#pragma once

// A task's sandbox as its owner may look at it. The tree belongs to a tenant who may change it at any
// moment, and may have put anything there: every path is resolved beneath the sandbox and within its mount,
// with the reader's rights (base/acting_as.h), and only regular files are ever opened for reading (a FIFO
// would block us, a device could do anything). Blocks; one object is used by one thread at a time.

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/files.h"
#include "base/result.h"
#include "base/units.h"
#include "base/users.h"

namespace drover {

struct FileInfo {
  std::string name;
  std::string kind;  ///< "file", "directory", "link" or "other"
  std::uint64_t size = 0;
  unsigned mode = 0;  ///< permission bits
  uid_t uid = 0;
  gid_t gid = 0;
  TimePoint modified_at{};
};

/// A regular file that the reader may read, open for reading.
struct SandboxFile {
  UniqueFd fd;
  std::uint64_t size = 0;   ///< when it was opened
  std::uint64_t inode = 0;  ///< tells one generation of a rotated file from the next

  /// Up to `length` bytes from `offset`; fewer only at the end.
  Result<std::string> read(std::uint64_t offset, std::size_t length) const;
};

class Sandbox {
 public:
  /// `reader`: by whose rights everything is opened. For root they are those of the sandbox's owner: root
  /// wants to see what the task sees, and not to be led elsewhere by it.
  static Result<Sandbox> open(const std::string& folder, User reader);
  static Result<Sandbox> open(Directory folder, User reader);

  /// What is in the folder `path` ("" or "/" is the sandbox itself), by name; of more than 10,000 entries
  /// those that the file system has first.
  Result<std::vector<FileInfo>> browse(const std::string& path) const;
  /// Fails with kNotFound when there is nothing, or only a hard link to somebody else's file; with kInvalid
  /// when it is no regular file, and with kPermissionDenied when the reader may not read it.
  Result<SandboxFile> file(const std::string& path) const;

 private:
  Sandbox(Directory directory, User reader) : directory_(std::move(directory)), reader_(std::move(reader)) {}

  /// Only names it (O_PATH): nothing is opened, and nothing happens.
  Result<UniqueFd> find(const std::string& path) const;
  /// Opens what find() has found.
  Result<UniqueFd> reopen(const UniqueFd& found, const std::string& path, int flags) const;

  Directory directory_;
  User reader_;
};

/// A file that was opened, wherever it is.
struct SandboxContent {
  std::uint64_t size = 0;   ///< when it was opened
  std::uint64_t inode = 0;  ///< as of SandboxFile
  /// As SandboxFile::read().
  std::function<Result<std::string>(std::uint64_t offset, std::size_t length)> read;
};
SandboxContent content_of(SandboxFile file);

/// The sandbox of one task, wherever it is: on this machine, or on a node of a cluster. Thread safe; blocks,
/// and not without end.
class SandboxReader {
 public:
  virtual ~SandboxReader() = default;
  /// As those of Sandbox.
  virtual Result<std::vector<FileInfo>> browse(const User& reader, const std::string& path) const = 0;
  virtual Result<SandboxContent> file(const User& reader, const std::string& path) const = 0;
};

/// One that is a folder here.
class FolderReader final : public SandboxReader {
 public:
  explicit FolderReader(std::string folder) : folder_(std::move(folder)) {}
  Result<std::vector<FileInfo>> browse(const User& reader, const std::string& path) const override;
  Result<SandboxContent> file(const User& reader, const std::string& path) const override;

 private:
  std::string folder_;
};

/// Where a piece of text must end so that it does not cut a UTF-8 character in two; `text.size()` when there
/// is nothing to cut, or when it is no UTF-8 at that place anyway.
std::size_t complete_utf8(std::string_view text);
bool is_utf8(std::string_view text);

}  // namespace drover
