#pragma once

// One blob on its way into a file, which others read as it grows: a layer is unpacked while it arrives, and
// nothing is read from the network or the disk twice. One thread writes, any number follow.

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "base/result.h"
#include "image/pulled/blobs.h"
#include "image/registry/session.h"
#include "image/stream.h"

namespace drover::image {

class Download {
 public:
  Download(const Descriptor& blob, int file) : blob_(blob), file_(file) {}

  /// Fills the file from `have` bytes on, which it already has and which are read once, and compares the
  /// digest. `told` hears how many bytes there are, and ends it with an Error. A file that was begun by
  /// somebody else and is wrong is an Error of kCorrupt: begin anew.
  Status run(RegistrySession& session, HttpClient& client, std::uint64_t have,
             const std::function<Status(std::uint64_t)>& told);
  /// Ends followers with this outcome; run() does it itself.
  void end(const Status& outcome);

  /// Blocks until there is more than `offset`, and returns how much; returns `offset` when it is whole and
  /// right, and an Error when it never will be.
  Result<std::uint64_t> wait_beyond(std::uint64_t offset) const;
  int file() const { return file_; }

 private:
  Status fetch(RegistrySession& session, HttpClient& client, std::uint64_t have,
               const std::function<Status(std::uint64_t)>& told);
  Status read_begun(Sha256& hash, std::uint64_t have, const RegistrySession& session);
  void add(std::uint64_t bytes);

  const Descriptor& blob_;
  int file_;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::uint64_t there_ = 0;
  std::optional<Status> outcome_;
};

/// A download from its start, at the pace at which it comes. Its end is that of a blob that was checked.
class FollowStream : public ByteStream {
 public:
  explicit FollowStream(const Download& download);
  Result<std::string_view> next() override;

 private:
  const Download& download_;
  std::uint64_t position_ = 0;
  std::vector<char> buffer_;
};

}  // namespace drover::image
