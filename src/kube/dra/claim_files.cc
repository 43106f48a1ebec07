#include "kube/dra/claim_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <utility>

#include "base/files.h"

namespace drover::kube::dra {
namespace {

constexpr const char* kCheckpoint = "checkpoint.json";
constexpr const char* kAside = "checkpoint.json.unreadable";
constexpr const char* kEnding = ".json";
/// Of NVIDIA's driver, which may have been here before.
constexpr const char* kOtherEnding = ".yaml";
constexpr std::size_t kLongestUid = 64;
/// Behind the name of a folder of pages that is being made. No uid ends so.
constexpr const char* kUnfinished = ".unfinished";

/// nullopt when there is no such folder.
Result<std::optional<Directory>> existing(const std::string& path) {
  if (std::error_code error; !std::filesystem::exists(path, error)) return std::nullopt;
  DROVER_TRY(auto folder, Directory::open(path));
  return folder;
}

/// After a loss of power there are whole pages or none.
Status make_durable(const Directory& claim) {
  DROVER_TRY(const auto pages, claim.subdirectory(share::kPagesFolder));
  for (const char* name : {share::kLimitsPage, share::kAccountPage}) {
    DROVER_TRY(const auto page, pages.open_file(name, O_RDONLY));
    if (::fsync(page.get()) != 0)
      return fail_errno(fmt::format("Failed to write '{}/{}'", pages.path(), name), errno);
  }
  DROVER_CHECK_OK(pages.sync());
  return claim.sync();
}

}  // namespace

bool is_claim_uid(const std::string& uid) {
  const auto plain = [](char c) { return ('0' <= c && c <= '9') || ('a' <= c && c <= 'z') || c == '-'; };
  return !uid.empty() && uid.size() <= kLongestUid && std::ranges::all_of(uid, plain) && uid.front() != '-' &&
         uid.back() != '-';
}

ClaimFolders::ClaimFolders(std::string plugin, std::string cdi, std::string vendor, std::string shares)
    : plugin_(std::move(plugin)),
      cdi_(std::move(cdi)),
      shares_(std::move(shares)),
      prefix_(std::move(vendor) + "-claim_") {}

Status ClaimFolders::remove_unfinished() {
  for (const auto& [path, prefix] : {std::pair(plugin_, std::string(kCheckpoint)), {cdi_, prefix_}}) {
    DROVER_TRY(const auto folder, existing(path));
    if (folder) DROVER_CHECK_OK(folder->remove_unfinished(prefix));
  }
  DROVER_TRY(const auto folder, existing(shares_));
  if (!folder) return {};
  DROVER_TRY(const auto names, folder->list());
  for (const auto& name : names)
    if (name.ends_with(kUnfinished)) DROVER_CHECK_OK(folder->remove_tree(name));
  return {};
}

Result<std::optional<std::string>> ClaimFolders::read_checkpoint() {
  DROVER_TRY(const auto folder, existing(plugin_));
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
  std::map<std::string, std::string> texts;
  DROVER_TRY(const auto folder, existing(cdi_));
  if (!folder) return texts;
  DROVER_TRY(const auto names, folder->list());
  for (const auto& name : names) {
    if (!name.starts_with(prefix_) || (!name.ends_with(kEnding) && !name.ends_with(kOtherEnding))) continue;
    const auto uid = name.substr(prefix_.size(), name.rfind('.') - prefix_.size());
    if (!is_claim_uid(uid)) continue;
    // What cannot be read is there all the same.
    texts.emplace(uid, folder->read(name).value_or(""));
  }
  return texts;
}

Status ClaimFolders::write_specification(const std::string& uid, const std::string& text) {
  DROVER_TRY(const auto folder, Directory::create(cdi_));
  DROVER_CHECK_OK(folder.write(prefix_ + uid + kEnding, text));
  // Two files that tell of one device are in conflict, and nobody would get it.
  return folder.remove_tree(prefix_ + uid + kOtherEnding);
}

Status ClaimFolders::remove_specification(const std::string& uid) {
  DROVER_TRY(const auto folder, existing(cdi_));
  if (!folder) return {};
  for (const char* ending : {kEnding, kOtherEnding})
    DROVER_CHECK_OK(folder->remove_tree(prefix_ + uid + ending));
  return folder->sync();
}

Status ClaimFolders::keep_pages(const std::string& uid, const std::vector<share::Limit>& limits) {
  DROVER_TRY(const auto folder, Directory::create(shares_, 0700));
  if (folder.exists(uid)) return {};
  const auto unfinished = uid + kUnfinished;
  DROVER_CHECK_OK(folder.remove_tree(unfinished));
  DROVER_TRY(const auto own, folder.make_subdirectory(unfinished));
  DROVER_CHECK_OK(share::make_pages(own, limits));
  DROVER_CHECK_OK(make_durable(own));
  if (::renameat(folder.fd(), unfinished.c_str(), folder.fd(), uid.c_str()) != 0)
    return fail_errno("Failed to put '" + pages_folder(uid) + "' in place", errno);
  return folder.sync();
}

Status ClaimFolders::remove_pages(const std::string& uid) {
  DROVER_TRY(const auto folder, existing(shares_));
  return folder ? folder->remove_tree(uid) : Status();
}

Result<std::set<std::string>> ClaimFolders::list_pages() {
  std::set<std::string> uids;
  DROVER_TRY(const auto folder, existing(shares_));
  if (!folder) return uids;
  DROVER_TRY(const auto names, folder->list());
  std::ranges::copy_if(names, std::inserter(uids, uids.end()), is_claim_uid);
  return uids;
}

}  // namespace drover::kube::dra
