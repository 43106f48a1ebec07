#include "image/pulled/blobs.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "image/digest.h"
#include "image/layout.h"

namespace drover::image {
namespace {

std::string hex_of(const std::string& digest) {
  return digest.substr(digest.find(':') + 1);
}

}  // namespace

std::string scope_of(bool everybody, uid_t uid) {
  return everybody ? kEverybody : std::to_string(uid);
}

Result<Blobs> Blobs::open(const Directory& layout) {
  DROVER_TRY(auto own, Directory::open(layout.path()));
  DROVER_TRY(const auto blobs, layout.make_subdirectory("blobs", 0700));
  DROVER_TRY(auto whole, blobs.make_subdirectory("sha256", 0700));
  DROVER_CHECK_OK(whole.remove_unfinished(""));
  DROVER_TRY(auto partial, layout.make_subdirectory("partial", 0700));
  DROVER_TRY(auto facts, layout.make_subdirectory("facts", 0700));
  return Blobs(std::move(own), std::move(whole), std::move(partial), std::move(facts));
}

bool Blobs::contains(const std::string& digest) const {
  return whole_.exists(hex_of(digest));
}

bool Blobs::may_use(const std::string& digest, uid_t uid) const {
  return facts_.exists(hex_of(digest) + "." + kEverybody) ||
         facts_.exists(fmt::format("{}.{}", hex_of(digest), uid));
}

void Blobs::allow(const std::string& digest, const std::string& scope) const {
  note(hex_of(digest) + "." + scope);
}

bool Blobs::is_known_as(const std::string& digest, const std::string& diff_id) const {
  return facts_.exists(hex_of(digest) + "=" + hex_of(diff_id));
}

void Blobs::note_known_as(const std::string& digest, const std::string& diff_id) const {
  note(hex_of(digest) + "=" + hex_of(diff_id));
}

/// A fact that cannot be kept is one to be found again: this never fails.
void Blobs::note(const std::string& name) const {
  (void)facts_.open_file(name, O_WRONLY | O_CREAT, 0600);
}

Result<std::unique_ptr<FolderFiles>> Blobs::files() const {
  return FolderFiles::open_folder(Reader({.uid = ::geteuid(), .gid = ::getegid()}), layout_.path());
}

Status Blobs::add(const std::string& digest, std::string_view text) const {
  return whole_.write(hex_of(digest), text, 0600);
}

Result<Blobs::Partial> Blobs::open_partial(const std::string& digest, const std::string& scope) const {
  Partial partial;
  partial.name = hex_of(digest) + "." + scope;
  DROVER_TRY(partial.file, partial_.open_file(partial.name, O_RDWR | O_CREAT, 0600));
  struct stat info{};
  if (::fstat(partial.file.get(), &info) != 0)
    return fail_errno(fmt::format("Failed to look at '{}/{}'", partial_.path(), partial.name), errno);
  partial.size = static_cast<std::uint64_t>(info.st_size);
  return partial;
}

Status Blobs::finish(const Partial& partial, const std::string& digest, const std::string& scope) const {
  const auto hex = hex_of(digest);
  if (::renameat(partial_.fd(), partial.name.c_str(), whole_.fd(), hex.c_str()) != 0)
    return fail_errno(fmt::format("Failed to write '{}/{}'", whole_.path(), hex), errno);
  allow(digest, scope);
  return {};
}

void Blobs::drop(const Partial& partial) const {
  (void)partial_.remove_tree(partial.name);
}

Result<std::vector<std::string>> Blobs::list() const {
  DROVER_TRY(const auto names, whole_.list());
  std::vector<std::string> digests;
  for (const auto& name : names)
    if (auto digest = "sha256:" + name; digest_hex(digest)) digests.push_back(std::move(digest));
  return digests;
}

Result<std::uint64_t> Blobs::size(const std::string& digest) const {
  struct stat info{};
  if (::fstatat(whole_.fd(), hex_of(digest).c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0)
    return fail_errno(fmt::format("Failed to look at blob '{}'", digest), errno);
  return static_cast<std::uint64_t>(info.st_size);
}

Result<bool> Blobs::is_sound(const std::string& digest) const {
  DROVER_TRY(const auto file, whole_.open_file(hex_of(digest), O_RDONLY));
  Sha256 content;
  std::vector<char> buffer(1 << 20);
  while (true) {
    const auto size = ::read(file.get(), buffer.data(), buffer.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return fail_errno(fmt::format("Failed to read blob '{}'", digest), errno);
    if (size == 0) return content.finish() == digest;
    content.update({buffer.data(), static_cast<std::size_t>(size)});
  }
}

Status Blobs::remove(const std::string& digest) const {
  const auto hex = hex_of(digest);
  DROVER_CHECK_OK(whole_.remove_tree(hex));
  DROVER_TRY(const auto facts, facts_.list());
  for (const auto& fact : facts)
    if (fact.starts_with(hex)) DROVER_CHECK_OK(facts_.remove_tree(fact));
  return {};
}

Result<std::uint64_t> Blobs::remove_partial(const std::string& name) const {
  struct stat info{};
  if (::fstatat(partial_.fd(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) return 0;
  DROVER_CHECK_OK(partial_.remove_tree(name));
  return static_cast<std::uint64_t>(info.st_size);
}

}  // namespace drover::image
