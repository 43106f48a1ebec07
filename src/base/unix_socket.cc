#include "base/unix_socket.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>

namespace drover {

std::string socket_path(const Directory& folder, const char* name) {
  return fmt::format("/proc/self/fd/{}/{}", folder.fd(), name);
}

Result<UniqueFd> listen_at(const Directory& folder, const char* name) {
  DROVER_CHECK_OK(folder.remove_tree(name));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  socket_path(folder, name).copy(static_cast<char*>(address.sun_path), sizeof address.sun_path - 1);
  UniqueFd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener.valid() ||
      ::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(listener.get(), SOMAXCONN) != 0)
    return fail_errno(fmt::format("Failed to listen at '{}/{}'", folder.path(), name), errno);
  return listener;
}

}  // namespace drover
