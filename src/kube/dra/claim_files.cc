#include "kube/dra/claim_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/find_directory.h"

namespace drover::kube::dra {
namespace {

constexpr const char* kCheckpoint = "checkpoint.json";
constexpr const char* kAside = "checkpoint.json.unreadable";
constexpr std::size_t kLongestUid = 64;

}  // namespace

bool is_claim_uid(const std::string& uid) {
  const auto plain = [](char c) { return ('0' <= c && c <= '9') || ('a' <= c && c <= 'z') || c == '-'; };
  return !uid.empty() && uid.size() <= kLongestUid && std::ranges::all_of(uid, plain) && uid.front() != '-' &&
         uid.back() != '-';
}

ClaimFolders::ClaimFolders(std::string plugin, std::string cdi, std::string vendor, std::string shares)
    : plugin_(std::move(plugin)),
      specifications_(std::move(cdi), std::move(vendor) + "-claim_"),
      pages_(std::move(shares)) {}

Status ClaimFolders::remove_unfinished() {
  DROVER_TRY(const auto folder, find_directory(plugin_));
  if (folder) DROVER_CHECK_OK(folder->remove_unfinished(kCheckpoint));
  DROVER_CHECK_OK(specifications_.remove_unfinished());
  return pages_.remove_unfinished();
}

Result<std::optional<std::string>> ClaimFolders::read_checkpoint() {
  DROVER_TRY(const auto folder, find_directory(plugin_));
  if (!folder || !folder->exists(kCheckpoint)) return std::nullopt;
  struct stat status{};
  if (::fstatat(folder->fd(), kCheckpoint, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
      (!S_ISREG(status.st_mode) || static_cast<std::uint64_t>(status.st_size) > kMaxTextFile))
    return fail(ErrorKind::kCorrupt, fmt::format("'{}/{}' is no file, or larger than {} bytes", plugin_,
                                                 kCheckpoint, kMaxTextFile));
  DROVER_TRY(auto text, folder->read(kCheckpoint));
  return text;
}

Status ClaimFolders::write_checkpoint(const std::string& text) {
  DROVER_TRY(const auto folder, Directory::create(plugin_));
  return folder.write(kCheckpoint, text, 0600);
}

Status ClaimFolders::set_checkpoint_aside() {
  DROVER_TRY(const auto folder, Directory::open(plugin_));
  DROVER_CHECK_OK(folder.remove_tree(kAside));
  if (::renameat(folder.fd(), kCheckpoint, folder.fd(), kAside) != 0)
    return fail_errno("Failed to set '" + plugin_ + "/" + kCheckpoint + "' aside", errno);
  return folder.sync();
}

Result<std::map<std::string, std::string>> ClaimFolders::read_specifications() {
  DROVER_TRY(auto texts, specifications_.read());
  std::erase_if(texts, [](const auto& one) { return !is_claim_uid(one.first); });
  return texts;
}

Result<std::set<std::string>> ClaimFolders::list_pages() {
  DROVER_TRY(auto names, pages_.list());
  std::erase_if(names, [](const auto& name) { return !is_claim_uid(name); });
  return names;
}

}  // namespace drover::kube::dra
