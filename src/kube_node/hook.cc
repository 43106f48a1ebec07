#include "kube_node/hook.h"

#include <fmt/format.h>
#include <sys/statvfs.h>

#include <cerrno>
#include <filesystem>

#include "base/files.h"

namespace drover {
namespace {

constexpr const char* kHookName = "drover-cdi-hook";

Result<std::string> read_hook() {
  DROVER_TRY(const auto here, executable_directory());
  const auto installed = std::filesystem::path(here).parent_path() / "libexec/drover" / kHookName;
  if (auto built = read_file(fmt::format("{}/{}", here, kHookName))) return built;
  return read_file(installed).map_error([](Error error) {
    error.hint = "install the program as a whole: 'cmake --install'";
    return error;
  });
}

}  // namespace

Result<std::string> place_cdi_hook(const std::string& state) {
  DROVER_TRY(const auto folder, Directory::open(state));
  struct statvfs info{};
  if (::fstatvfs(folder.fd(), &info) != 0)
    return fail_errno(fmt::format("Failed to look at the file system of '{}'", state), errno);
  if ((info.f_flag & ST_NOEXEC) != 0)
    return fail(ErrorKind::kUnsupported,
                fmt::format("'{}' lies on a file system mounted noexec, so no container runtime could run "
                            "Drover's CDI hook there",
                            state),
                "choose another folder with --state, or mount that file system with exec");
  DROVER_TRY(const auto hook, read_hook());
  DROVER_CHECK_OK(folder.write(kHookName, hook, 0755));
  return fmt::format("{}/{}", state, kHookName);
}

}  // namespace drover
