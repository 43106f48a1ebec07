#include "base/open_path.h"

#include <sys/syscall.h>

#include <cerrno>

namespace drover {
namespace {

constexpr int kTries = 1000;

}  // namespace

UniqueFd open_path(int directory, const std::string& path, int flags, std::uint64_t resolve, mode_t mode) {
  open_how how{};
  how.flags = static_cast<std::uint64_t>(flags) | O_CLOEXEC;
  how.mode = (flags & O_CREAT) != 0 ? mode : 0;
  how.resolve = resolve;
  for (int tries = 1;; ++tries) {
    UniqueFd fd(static_cast<int>(::syscall(SYS_openat2, directory, path.c_str(), &how, sizeof how)));
    if (fd.valid() || errno != EAGAIN || tries == kTries) return fd;
  }
}

}  // namespace drover
