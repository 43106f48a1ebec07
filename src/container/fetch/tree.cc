#include "container/fetch/tree.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

namespace drover::container {
namespace {

constexpr mode_t kFolderMode = 0755;
constexpr int kOpenFolder = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

Failure cannot_write(std::string_view path, int error) {
  if (error == ELOOP || error == ENOTDIR)
    return fail(ErrorKind::kInvalid, fmt::format("'{}' would be written through a link or a file", path));
  return fail_errno(fmt::format("Failed to write '{}'", path), error);
}

/// Whatever it is but a folder.
bool remove_old(int folder, const std::string& name) {
  return ::unlinkat(folder, name.c_str(), 0) == 0 || errno == ENOENT;
}

}  // namespace

Result<UniqueFd> Tree::walk(std::string_view folders, Missing missing) const {
  UniqueFd here(::openat(root_, ".", kOpenFolder));
  if (!here.valid()) return cannot_write(".", errno);
  auto rest = folders;
  while (!rest.empty()) {
    const auto slash = std::min(rest.find('/'), rest.size());
    const std::string name(rest.substr(0, slash));
    rest.remove_prefix(std::min(slash + 1, rest.size()));
    bool made = false;
    if (missing == Missing::kMake) {
      made = ::mkdirat(here.get(), name.c_str(), kFolderMode) == 0;
      if (!made && errno != EEXIST) return cannot_write(folders, errno);
    }
    UniqueFd next(::openat(here.get(), name.c_str(), kOpenFolder));
    if (!next.valid()) return cannot_write(folders, errno);
    if (made && owner_ && ::fchown(next.get(), owner_->uid, owner_->gid) != 0)
      return cannot_write(folders, errno);
    here = std::move(next);
  }
  return here;
}

Result<Tree::Place> Tree::place(const std::string& path, Missing missing) const {
  const auto slash = path.rfind('/');
  const auto folders = slash == std::string::npos ? std::string() : path.substr(0, slash);
  DROVER_TRY(auto folder, walk(folders, missing));
  return Place{std::move(folder), slash == std::string::npos ? path : path.substr(slash + 1)};
}

Result<Tree::NewFile> Tree::make(const std::string& path, mode_t mode) {
  DROVER_TRY(auto where, place(path, Missing::kMake));
  NewFile file;
  file.temporary = fmt::format(".drover-fetch-{}", ::getpid());
  (void)remove_old(where.folder.get(), file.temporary);
  file.fd.reset(::openat(where.folder.get(), file.temporary.c_str(),
                         O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
  if (!file.fd.valid() || ::fchmod(file.fd.get(), mode) != 0) return cannot_write(path, errno);
  file.folder = std::move(where.folder);
  file.name = std::move(where.name);
  return file;
}

Status Tree::put(const NewFile& file) {
  if (::renameat(file.folder.get(), file.temporary.c_str(), file.folder.get(), file.name.c_str()) == 0)
    return {};
  const int error = errno;
  drop(file);
  if (error == EISDIR)
    return fail(ErrorKind::kInvalid, fmt::format("there is a folder in the way of '{}'", file.name));
  return cannot_write(file.name, error);
}

void Tree::drop(const NewFile& file) {
  (void)remove_old(file.folder.get(), file.temporary);
}

Status Tree::make_folder(const std::string& path) {
  DROVER_TRY(const auto folder, walk(path, Missing::kMake));
  return {};
}

Status Tree::make_empty(const std::string& path) {
  DROVER_TRY(const auto where, place(path, Missing::kMake));
  const UniqueFd file(::openat(where.folder.get(), where.name.c_str(),
                               O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644));
  if (file.valid()) {
    if (owner_ && ::fchown(file.get(), owner_->uid, owner_->gid) != 0) return cannot_write(path, errno);
    return {};
  }
  struct stat info{};
  if (errno == EEXIST && ::fstatat(where.folder.get(), where.name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0 &&
      S_ISREG(info.st_mode))
    return {};
  return fail(ErrorKind::kInvalid, fmt::format("there is something else than a file at '{}'", path));
}

Status Tree::make_symlink(const std::string& path, const std::string& target) {
  DROVER_TRY(const auto where, place(path, Missing::kMake));
  if (!remove_old(where.folder.get(), where.name) ||
      ::symlinkat(target.c_str(), where.folder.get(), where.name.c_str()) != 0)
    return cannot_write(path, errno);
  return {};
}

Status Tree::make_link(const std::string& path, const std::string& target) {
  if (path == target) return {};
  DROVER_TRY(const auto from, place(target, Missing::kRefuse));
  struct stat info{};
  if (::fstatat(from.folder.get(), from.name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0 ||
      !S_ISREG(info.st_mode))
    return fail(ErrorKind::kInvalid, fmt::format("'{}' is a link to '{}', which is no file", path, target));
  DROVER_TRY(const auto to, place(path, Missing::kMake));
  if (!remove_old(to.folder.get(), to.name) ||
      ::linkat(from.folder.get(), from.name.c_str(), to.folder.get(), to.name.c_str(), 0) != 0)
    return cannot_write(path, errno);
  return {};
}

}  // namespace drover::container
