#include "base/service_manager.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <charconv>
#include <cstddef>
#include <cstring>

#include "base/fd.h"

namespace drover {
namespace {

std::string taken(const char* name) {
  const char* value = ::getenv(name);
  std::string text = value == nullptr ? "" : value;
  ::unsetenv(name);
  return text;
}

template <typename Number>
std::optional<Number> number_in(const std::string& text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

}  // namespace

ServiceManager ServiceManager::of_environment() {
  ServiceManager manager;
  manager.socket_ = taken("NOTIFY_SOCKET");
  const auto interval = number_in<std::int64_t>(taken("WATCHDOG_USEC"));
  const auto meant = number_in<pid_t>(taken("WATCHDOG_PID"));
  if (interval && *interval > 0 && (!meant || *meant == ::getpid()))
    manager.watchdog_ = std::chrono::floor<std::chrono::milliseconds>(std::chrono::microseconds(*interval));
  return manager;
}

void ServiceManager::notify(std::string_view state) const {
  sockaddr_un address{};
  if (socket_.empty() || socket_.size() >= sizeof address.sun_path) return;
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, socket_.data(), socket_.size());
  if (address.sun_path[0] == '@') address.sun_path[0] = '\0';  // abstract
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + socket_.size());
  const UniqueFd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  (void)::sendto(socket.get(), state.data(), state.size(), MSG_NOSIGNAL | MSG_DONTWAIT,
                 reinterpret_cast<const sockaddr*>(&address), length);
}

}  // namespace drover
