#include "container/fetch/cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/files.h"
#include "base/json_text.h"
#include "image/digest.h"

namespace drover::container {
namespace {

using nlohmann::json;

constexpr std::size_t kChunk = 1 << 20;
constexpr const char* kMeta = ".json";
constexpr const char* kLock = "lock";

std::string name_of(const std::string& uri) {
  return image::digest_hex(image::sha256_of(uri)).value_or("");
}

struct Stored {
  std::string name;
  std::uint64_t bytes = 0;
  timespec used{};
};

std::vector<Stored> stored(int folder) {
  std::vector<Stored> all;
  UniqueFd copy(::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const std::unique_ptr<DIR, decltype([](DIR* open) { ::closedir(open); })> listing(::fdopendir(copy.get()));
  if (!listing) return all;
  copy.release();
  while (const auto* entry = ::readdir(listing.get())) {
    const std::string name = static_cast<const char*>(entry->d_name);
    struct stat info{};
    if (::fstatat(folder, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(info.st_mode)) continue;
    if (name == kLock || name.ends_with(kMeta)) continue;
    all.push_back({name, static_cast<std::uint64_t>(info.st_size), info.st_mtim});
  }
  return all;
}

}  // namespace

Status copy_content(int from, int to) {
  off_t read_at = 0;
  off_t written_at = 0;
  while (true) {
    const auto count = ::copy_file_range(from, &read_at, to, &written_at, kChunk * 64, 0);
    if (count > 0) continue;
    if (count == 0) return {};
    if (errno == EINTR) continue;
    break;
  }
  const auto buffer = std::make_unique<std::array<char, kChunk>>();
  while (true) {
    const auto count = ::pread(from, buffer->data(), buffer->size(), read_at);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return fail_errno("Failed to read it", errno);
    if (count == 0) return {};
    if (::lseek(to, written_at, SEEK_SET) < 0) return fail_errno("Failed to write it", errno);
    DROVER_CHECK_OK(write_all(to, {buffer->data(), static_cast<std::size_t>(count)}, "it"));
    read_at += count;
    written_at += count;
  }
}

std::optional<FetchCache::Entry> FetchCache::find(const std::string& uri) const {
  const auto name = name_of(uri);
  const UniqueFd meta(::openat(folder_, (name + kMeta).c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  Entry entry;
  entry.file.reset(::openat(folder_, name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  struct stat info{};
  if (!meta.valid() || !entry.file.valid() || ::fstat(entry.file.get(), &info) != 0) return std::nullopt;
  const auto text = read_all(meta.get(), "the cache");
  const auto value = json::parse(text.value_or(""), nullptr, false);
  if (!value.is_object()) return std::nullopt;
  entry.validators.etag = value.value("etag", "");
  entry.validators.last_modified = value.value("last_modified", "");
  entry.validators.size = static_cast<std::uint64_t>(info.st_size);
  if (value.value("size", std::uint64_t{0}) != entry.validators.size) return std::nullopt;
  ::futimens(entry.file.get(), nullptr);
  return entry;
}

void FetchCache::make_room(std::uint64_t bytes) const {
  auto all = stored(folder_);
  std::sort(all.begin(), all.end(), [](const Stored& a, const Stored& b) {
    return std::tie(a.used.tv_sec, a.used.tv_nsec) < std::tie(b.used.tv_sec, b.used.tv_nsec);
  });
  for (const auto& file : all) bytes += file.bytes;
  for (const auto& file : all) {
    if (bytes <= limit_) return;
    ::unlinkat(folder_, (file.name + kMeta).c_str(), 0);
    ::unlinkat(folder_, file.name.c_str(), 0);
    bytes -= file.bytes;
  }
}

void FetchCache::add(const std::string& uri, int file, const Validators& validators) const {
  if (validators.size > limit_) return;
  const UniqueFd lock(::openat(folder_, kLock, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!lock.valid() || ::flock(lock.get(), LOCK_EX) != 0) return;
  make_room(validators.size);
  const auto name = name_of(uri);
  const auto fresh = name + ".new";
  ::unlinkat(folder_, fresh.c_str(), 0);
  const UniqueFd copy(
      ::openat(folder_, fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!copy.valid()) return;
  // Without its description a file counts as absent: so the two never tell of different fetches.
  ::unlinkat(folder_, (name + kMeta).c_str(), 0);
  if (!copy_content(file, copy.get()) || ::renameat(folder_, fresh.c_str(), folder_, name.c_str()) != 0) {
    ::unlinkat(folder_, fresh.c_str(), 0);
    return;
  }
  const json meta = {
      {"etag", validators.etag}, {"last_modified", validators.last_modified}, {"size", validators.size}};
  const UniqueFd description(
      ::openat(folder_, (name + kMeta).c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (description.valid()) (void)write_all(description.get(), to_text(meta), "the cache");
}

}  // namespace drover::container
