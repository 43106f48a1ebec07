#include "image/pulled/uses.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <sstream>

#include "image/digest.h"

namespace drover::image {
namespace {

std::string file_of_use(const NameOfUser& name) {
  return *digest_hex(sha256_of(fmt::format("{} {}", name.first, name.second)));
}

/// Lines that a machine which went down has spoilt are left out.
std::vector<std::string> parse_digests(const std::string& text) {
  std::vector<std::string> digests;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);)
    if (digest_hex(line)) digests.push_back(line);
  return digests;
}

TimePoint changed_at(const struct stat& info) {
  const auto since_epoch =
      std::chrono::seconds(info.st_mtim.tv_sec) + std::chrono::nanoseconds(info.st_mtim.tv_nsec);
  return TimePoint(std::chrono::duration_cast<std::chrono::milliseconds>(since_epoch));
}

}  // namespace

Result<std::unique_ptr<Uses>> Uses::open(Directory folder) {
  std::unique_ptr<Uses> uses(new Uses(std::move(folder)));
  DROVER_CHECK_OK(uses->read_all_uses());
  return uses;
}

Status Uses::read_all_uses() {
  DROVER_TRY(const auto names, folder_.list());
  for (const auto& name : names) {
    struct stat info{};
    const auto text = folder_.read(name);
    if (!text || ::fstatat(folder_.fd(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) continue;
    uses_[name] = {changed_at(info), parse_digests(*text)};
  }
  return {};
}

void Uses::note(const NameOfUser& name, const std::vector<std::string>& digests) {
  if (digests.empty()) return;  // a root folder, which is its user's own
  const auto own = file_of_use(name);
  const std::lock_guard lock(mutex_);
  uses_[own] = {wall_clock(), digests};
  if (const auto file = folder_.open_file(own, O_WRONLY | O_CREAT | O_TRUNC, 0600))
    (void)write_all(file->get(), fmt::format("{}\n", fmt::join(digests, "\n")), own);
  if (uses_.size() <= kMost) return;
  const auto oldest = std::ranges::min_element(uses_, {}, [](const auto& use) { return use.second.at; });
  (void)folder_.remove_tree(oldest->first);
  uses_.erase(oldest);
}

std::set<std::string> Uses::digests_of(const std::set<NameOfUser>& names) const {
  std::set<std::string> digests;
  const std::lock_guard lock(mutex_);
  for (const auto& name : names)
    if (const auto use = uses_.find(file_of_use(name)); use != uses_.end())
      digests.insert(use->second.digests.begin(), use->second.digests.end());
  return digests;
}

std::map<std::string, TimePoint> Uses::times() const {
  std::map<std::string, TimePoint> times;
  const std::lock_guard lock(mutex_);
  for (const auto& [file, use] : uses_)
    for (const auto& digest : use.digests) times[digest] = std::max(times[digest], use.at);
  return times;
}

}  // namespace drover::image
