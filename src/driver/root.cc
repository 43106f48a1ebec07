#include "driver/root.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>

#include "base/files.h"
#include "base/open_path.h"

namespace drover::driver {
namespace {

Result<std::string> real_path(int fd) {
  std::error_code error;
  auto path = std::filesystem::read_symlink(descriptor_path(fd), error).string();
  if (error) return fail_errno("Failed to read the path of an open file", error.value());
  return path;
}

}  // namespace

UniqueFd open_in_root(int root, const std::string& path, int flags, mode_t mode, std::uint64_t resolve) {
  return open_path(root, path, flags, RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS | resolve, mode);
}

Result<Root> Root::open(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return fail_errno(fmt::format("Failed to open the driver root '{}'", path), errno);
  DROVER_TRY(auto real, real_path(fd.get()));
  if (real == "/") real.clear();
  return Root(std::move(fd), path, std::move(real));
}

Result<RootFile> Root::open_file(const std::string& path) const {
  // O_NONBLOCK: a FIFO must not make us wait for its writer.
  auto fd = open_in_root(fd_.get(), path, O_RDONLY | O_NONBLOCK);
  const auto shown = fmt::format("'{}' in the driver root '{}'", path, path_);
  if (!fd.valid()) return fail_errno("Failed to open " + shown, errno);
  struct stat info{};
  if (::fstat(fd.get(), &info) != 0) return fail_errno("Failed to look at " + shown, errno);
  if (!S_ISREG(info.st_mode)) return fail(ErrorKind::kInvalid, shown + " is not a regular file");
  DROVER_TRY(auto real, real_path(fd.get()));
  return RootFile{std::move(fd), real.starts_with(real_path_ + "/") ? real.substr(real_path_.size()) : path};
}

bool Root::is_link(const std::string& path) const {
  const auto fd = open_in_root(fd_.get(), path, O_PATH | O_NOFOLLOW);
  struct stat info{};
  return fd.valid() && ::fstat(fd.get(), &info) == 0 && S_ISLNK(info.st_mode);
}

std::vector<std::string> Root::list(const std::string& folder) const {
  const auto fd = open_in_root(fd_.get(), folder, O_RDONLY | O_DIRECTORY);
  if (!fd.valid()) return {};
  const auto directory = Directory::open(descriptor_path(fd.get()));
  if (!directory) return {};
  return directory->list().value_or(std::vector<std::string>{});
}

}  // namespace drover::driver
