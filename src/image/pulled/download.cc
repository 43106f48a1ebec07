#include "image/pulled/download.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/files.h"
#include "image/digest.h"

namespace drover::image {
namespace {

constexpr std::size_t kFollowBlock = 256 << 10;

Result<std::size_t> read_at(int file, std::uint64_t offset, std::vector<char>& buffer) {
  while (true) {
    const auto count = ::pread(file, buffer.data(), buffer.size(), static_cast<off_t>(offset));
    if (count >= 0) return static_cast<std::size_t>(count);
    if (errno != EINTR) return fail_errno("Failed to read a layer that was begun", errno);
  }
}

}  // namespace

Status Download::run(RegistrySession& session, HttpClient& client, std::uint64_t have,
                     const std::function<Status(std::uint64_t)>& told) {
  auto outcome = fetch(session, client, have, told);
  end(outcome);
  return outcome;
}

/// Of what an earlier download left; followers may have it at once.
Status Download::read_begun(Sha256& hash, std::uint64_t have, const RegistrySession& session) {
  std::vector<char> buffer(kFollowBlock);
  for (std::uint64_t done = 0; done < have;) {
    if (session.stopped()) return fail(ErrorKind::kUnavailable, "it was stopped");
    DROVER_TRY(const auto count, read_at(file_, done, buffer));
    if (count == 0) return fail(ErrorKind::kCorrupt, "the file that was begun became shorter");
    hash.update({buffer.data(), count});
    done += count;
    add(count);
  }
  return {};
}

Status Download::fetch(RegistrySession& session, HttpClient& client, std::uint64_t have,
                       const std::function<Status(std::uint64_t)>& told) {
  Sha256 hash;
  if (have > 0) DROVER_CHECK_OK(read_begun(hash, have, session));
  DROVER_CHECK_OK(told(have));
  if (::lseek(file_, static_cast<off_t>(have), SEEK_SET) < 0)
    return fail_errno("Failed to go on with a layer that was begun", errno);
  RegistrySession::BlobSink sink{have, {}};
  sink.take = [&](std::string_view piece) -> Status {
    DROVER_CHECK_OK(write_all(file_, piece, "the folder of images"));
    hash.update(piece);
    add(piece.size());
    return told(sink.offset + piece.size());
  };
  DROVER_CHECK_OK(session.blob(client, blob_, sink));
  const auto found = hash.finish();
  if (found == blob_.digest) return {};
  if (have > 0) return fail(ErrorKind::kCorrupt, "the file that was begun is damaged");
  return fail(
      ErrorKind::kInvalid,
      fmt::format(
          "the registry sent another layer than its manifest names: its digest is {} and should be {}", found,
          blob_.digest),
      "do not use this image: its registry or the way to it is damaged, or somebody changed it");
}

void Download::add(std::uint64_t bytes) {
  {
    const std::lock_guard lock(mutex_);
    there_ += bytes;
  }
  changed_.notify_all();
}

void Download::end(const Status& outcome) {
  {
    const std::lock_guard lock(mutex_);
    if (!outcome_) outcome_ = outcome;
  }
  changed_.notify_all();
}

Result<std::uint64_t> Download::wait_beyond(std::uint64_t offset) const {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return there_ > offset || outcome_; });
  if (outcome_ && !*outcome_) return Failure(outcome_->error());
  return there_;
}

FollowStream::FollowStream(const Download& download) : download_(download), buffer_(kFollowBlock) {}

Result<std::string_view> FollowStream::next() {
  DROVER_TRY(const auto there, download_.wait_beyond(position_));
  if (there == position_) return std::string_view();
  DROVER_TRY(const auto count, read_at(download_.file(), position_, buffer_));
  const auto fresh = std::min<std::uint64_t>(count, there - position_);
  if (fresh == 0) return fail(ErrorKind::kCorrupt, "the file that was begun became shorter");
  position_ += fresh;
  return std::string_view(buffer_.data(), fresh);
}

}  // namespace drover::image
