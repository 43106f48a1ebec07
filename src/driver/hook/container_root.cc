#include "driver/hook/container_root.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <nlohmann/json.hpp>

#include "base/decode.h"
#include "base/files.h"
#include "base/open_path.h"
#include "driver/root.h"

namespace drover::driver {
namespace {

constexpr int kMostFolders = 64;
constexpr mode_t kFolderMode = 0755;
constexpr mode_t kFileMode = 0644;

std::string parent_of(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == std::string::npos || slash == 0 ? "/" : path.substr(0, slash);
}
std::string name_of(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

Failure cannot(std::string_view what, const std::string& path, int error) {
  auto failure = errno_error(fmt::format("Failed to {} '{}' in the container", what, path), error);
  if (error == EXDEV || error == EBUSY) failure.kind = ErrorKind::kUnsupported;
  return Failure(std::move(failure));
}

std::string text_in(const nlohmann::json& object, const char* field) {
  const auto found = object.find(field);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

Result<nlohmann::json> object_in(std::string_view text, std::string_view what) {
  DROVER_TRY(auto value, parse_json(text, what));
  if (!value.is_object()) return fail(ErrorKind::kInvalid, fmt::format("{} is no object", what));
  return value;
}

}  // namespace

Result<ContainerRoot> ContainerRoot::open(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return fail_errno(fmt::format("Failed to open the container's root '{}'", path), errno);
  return ContainerRoot(std::move(fd));
}

Result<ContainerRoot> ContainerRoot::of_state(std::string_view text) {
  DROVER_TRY(const auto state, object_in(text, "The container's state"));
  const auto bundle = text_in(state, "bundle");
  if (!bundle.starts_with('/'))
    return fail(ErrorKind::kInvalid, "The container's state names no bundle",
                "hooks are called by an OCI runtime, which tells them on standard input");
  DROVER_TRY(const auto config_text, read_file(bundle + "/config.json"));
  DROVER_TRY(const auto config, object_in(config_text, "The container's configuration"));
  const auto root = config.find("root");
  const auto path = root != config.end() && root->is_object() ? text_in(*root, "path") : "";
  if (path.empty()) return fail(ErrorKind::kInvalid, "The container's configuration names no root");
  return open(path.starts_with('/') ? path : bundle + "/" + path);
}

bool ContainerRoot::has(const struct stat& file, const std::string& path) const {
  const auto fd = open_in_root(fd_.get(), path, O_PATH);
  struct stat info{};
  return fd.valid() && ::fstat(fd.get(), &info) == 0 && info.st_dev == file.st_dev &&
         info.st_ino == file.st_ino;
}

std::optional<UniqueFd> ContainerRoot::open_file(const std::string& path) const {
  auto fd = open_in_root(fd_.get(), path, O_RDONLY | O_NONBLOCK);
  struct stat info{};
  if (!fd.valid() || ::fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) return std::nullopt;
  return fd;
}

Result<UniqueFd> ContainerRoot::make_folder(const std::string& path, int depth) const {
  const auto open = [&] { return open_in_root(fd_.get(), path, O_RDONLY | O_DIRECTORY, 0, RESOLVE_NO_XDEV); };
  auto folder = open();
  if (folder.valid()) return folder;
  if (errno != ENOENT || path == "/" || depth > kMostFolders) return cannot("open the folder", path, errno);
  DROVER_TRY(const auto parent, make_folder(parent_of(path), depth + 1));
  if (::mkdirat(parent.get(), name_of(path).c_str(), kFolderMode) != 0 && errno != EEXIST)
    return cannot("make the folder", path, errno);
  folder = open();
  if (!folder.valid()) return cannot("open the folder", path, errno);
  return folder;
}

/// The folder of `path`, in which nothing has its name any more.
Result<UniqueFd> ContainerRoot::free_place(const std::string& path) const {
  const auto name = name_of(path);
  if (!path.starts_with('/') || name.empty() || name == "." || name == "..")
    return fail(ErrorKind::kInvalid, fmt::format("'{}' is not the path of a file", path));
  DROVER_TRY(auto folder, make_folder(parent_of(path)));
  if (::unlinkat(folder.get(), name.c_str(), 0) != 0 && errno != ENOENT)
    return cannot("replace", path, errno);
  return folder;
}

Status ContainerRoot::put_link(const std::string& path, const std::string& target) const {
  DROVER_TRY(const auto folder, free_place(path));
  if (::symlinkat(target.c_str(), folder.get(), name_of(path).c_str()) != 0)
    return cannot("make the link", path, errno);
  return {};
}

Status ContainerRoot::put_file(const std::string& path, std::string_view content) const {
  DROVER_TRY(const auto folder, free_place(path));
  const UniqueFd file(::openat(folder.get(), name_of(path).c_str(),
                               O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kFileMode));
  if (!file.valid()) return cannot("make the file", path, errno);
  if (::fchmod(file.get(), kFileMode) != 0) return cannot("set the mode of", path, errno);
  return write_all(file.get(), content, path);
}

}  // namespace drover::driver
