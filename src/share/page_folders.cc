#include "share/page_folders.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>

#include "base/find_directory.h"

namespace drover::share {
namespace {

/// Behind the name of a folder that is being made. No name of somebody ends so.
constexpr const char* kUnfinished = ".unfinished";

bool is_unfinished(const std::string& name) {
  return name.ends_with(kUnfinished);
}

/// After a loss of power there are whole pages or none.
Status make_durable(const Directory& own) {
  DROVER_TRY(const auto pages, own.subdirectory(kPagesFolder));
  for (const char* name : {kLimitsPage, kAccountPage}) {
    DROVER_TRY(const auto page, pages.open_file(name, O_RDONLY));
    if (::fsync(page.get()) != 0)
      return fail_errno(fmt::format("Failed to write '{}/{}'", pages.path(), name), errno);
  }
  DROVER_CHECK_OK(pages.sync());
  return own.sync();
}

}  // namespace

Status PageFolders::remove_unfinished() const {
  DROVER_TRY(const auto folder, find_directory(folder_));
  if (!folder) return {};
  DROVER_TRY(const auto names, folder->list());
  for (const auto& name : names)
    if (is_unfinished(name)) DROVER_CHECK_OK(folder->remove_tree(name));
  return {};
}

Status PageFolders::keep(const std::string& name, const std::vector<Limit>& limits) const {
  DROVER_TRY(const auto folder, Directory::create(folder_, 0700));
  if (folder.exists(name)) return {};
  const auto unfinished = name + kUnfinished;
  DROVER_CHECK_OK(folder.remove_tree(unfinished));
  DROVER_TRY(const auto own, folder.make_subdirectory(unfinished));
  DROVER_CHECK_OK(make_pages(own, limits));
  DROVER_CHECK_OK(make_durable(own));
  if (::renameat(folder.fd(), unfinished.c_str(), folder.fd(), name.c_str()) != 0)
    return fail_errno("Failed to put '" + path(name) + "' in place", errno);
  return folder.sync();
}

Status PageFolders::remove(const std::string& name) const {
  DROVER_TRY(const auto folder, find_directory(folder_));
  return folder ? folder->remove_tree(name) : Status();
}

Result<std::set<std::string>> PageFolders::list() const {
  std::set<std::string> found;
  DROVER_TRY(const auto folder, find_directory(folder_));
  if (!folder) return found;
  DROVER_TRY(const auto names, folder->list());
  std::ranges::remove_copy_if(names, std::inserter(found, found.end()), is_unfinished);
  return found;
}

}  // namespace drover::share
