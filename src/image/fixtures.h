#pragma once

// For the tests of this room only: tar files with any entry one can think of, and images made of them.

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/users.h"

namespace drover::image::testing {

/// A folder under the system's temporary folder, removed at the end.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }
  std::string operator/(std::string_view name) const { return path_ + "/" + std::string(name); }

 private:
  std::string path_;
};

/// One entry of a tar file, written as it is: nothing is checked or corrected.
struct Item {
  std::string path;
  char type = '0';  ///< ustar: 0 file, 1 hard link, 2 symlink, 3 and 4 devices, 5 folder, 6 fifo
  std::string content;
  std::string link;
  unsigned mode = 0644;
  std::uint64_t uid = 0;
  std::uint64_t gid = 0;
  std::map<std::string, std::string> pax;  ///< extended records, as "SCHILY.xattr.user.a"
};

Item file(std::string path, std::string content, unsigned mode = 0644);
Item folder(std::string path, unsigned mode = 0755);
Item symlink(std::string path, std::string target);
Item hard_link(std::string path, std::string target);

std::string make_tar(const std::vector<Item>& items);
std::string gzip(std::string_view bytes);
std::string zstd(std::string_view bytes);

/// The kind of the error; none when it went well.
template <typename T>
std::optional<ErrorKind> refusal_of(const Result<T>& result) {
  return result ? std::nullopt : std::optional(result.error().kind);
}

void write(const std::string& path, std::string_view content);
User this_user();

/// Writes an OCI layout piece by piece.
class LayoutBuilder {
 public:
  explicit LayoutBuilder(std::string folder);
  const std::string& folder() const { return folder_; }

  struct Blob {
    std::string digest;
    std::size_t size = 0;
  };
  Blob blob(std::string_view bytes);
  std::string blob_path(const std::string& digest) const;
  nlohmann::json descriptor(const Blob& blob, const std::string& media_type) const;
  /// An image of these uncompressed layers, stored with gzip; returns its manifest's descriptor. `changes`
  /// are merged into the configuration (RFC 7396).
  nlohmann::json image(const std::vector<std::string>& layers, const nlohmann::json& changes);
  nlohmann::json image(const std::vector<std::string>& layers);
  nlohmann::json manifest(const nlohmann::json& config, const nlohmann::json& layers);
  void index(const std::vector<nlohmann::json>& descriptors);

 private:
  std::string folder_;
};

nlohmann::json tagged(nlohmann::json descriptor, const std::string& tag);
/// This machine's, as images call it.
std::string architecture();

}  // namespace drover::image::testing
