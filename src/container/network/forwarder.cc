#include "container/network/forwarder.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <grp.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <set>

#include "base/pidfd.h"
#include "container/network/relay.h"

namespace drover::container {
namespace {

constexpr uid_t kNobody = 65534;
constexpr rlim_t kMostDescriptors = 8192;  // two a connection, each with a buffer of 64 KiB

Result<UniqueFd> bound_socket(const Forward& forward, bool ipv6) {
  const int type = (forward.udp ? SOCK_DGRAM : SOCK_STREAM) | SOCK_CLOEXEC | SOCK_NONBLOCK;
  UniqueFd fd(::socket(ipv6 ? AF_INET6 : AF_INET, type, 0));
  if (!fd.valid()) return fail_errno("Failed to create a socket", errno);
  const int yes = 1;
  const int no = 0;
  // Only for connections of before that the kernel still remembers: two listeners still clash.
  if (!forward.udp) ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_in6 six{};
  six.sin6_family = AF_INET6;
  six.sin6_port = htons(static_cast<std::uint16_t>(forward.host_port));
  sockaddr_in four{};
  four.sin_family = AF_INET;
  four.sin_port = six.sin6_port;
  if (ipv6) ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
  const auto* address =
      ipv6 ? reinterpret_cast<const sockaddr*>(&six) : reinterpret_cast<const sockaddr*>(&four);
  const bool bound = ::bind(fd.get(), address, ipv6 ? sizeof six : sizeof four) == 0 &&
                     (forward.udp || ::listen(fd.get(), SOMAXCONN) == 0);
  if (bound) return fd;
  if (errno == EADDRINUSE)
    return fail(ErrorKind::kConflict,
                fmt::format("{} {} is already in use on this machine", forward.udp ? "UDP port" : "Port",
                            forward.host_port),
                fmt::format("'ss -lp{}' shows by whom", forward.udp ? "u" : "t"));
  return fail_errno(fmt::format("Failed to take port {}", forward.host_port), errno);
}

/// Everything but these, from 3 on.
void close_all_but(const std::set<int>& kept) {
  unsigned next = STDERR_FILENO + 1;
  for (const int fd : kept) {
    if (static_cast<unsigned>(fd) > next) ::close_range(next, static_cast<unsigned>(fd) - 1, 0);
    next = static_cast<unsigned>(fd) + 1;
  }
  ::close_range(next, ~0U, 0);
}

void give_up_rights() {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = files.rlim_max = std::min(files.rlim_max, kMostDescriptors);
    ::setrlimit(RLIMIT_NOFILE, &files);
  }
  if (::setgroups(0, nullptr) != 0 || ::setresgid(kNobody, kNobody, kNobody) != 0 ||
      ::setresuid(kNobody, kNobody, kNobody) != 0)
    ::_exit(EXIT_FAILURE);
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

[[noreturn]] void become_forwarder(const std::vector<Listener>& listeners, int network, pid_t parent) {
  std::set<int> kept = {network};
  for (const auto& listener : listeners) kept.insert(listener.socket.get());
  close_all_but(kept);
  sigset_t none;
  ::sigemptyset(&none);
  for (const int signal : {SIGTERM, SIGINT, SIGUSR1, SIGCHLD}) ::signal(signal, SIG_DFL);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::prctl(PR_SET_NAME, "drover-forward");
  if (::setns(network, CLONE_NEWNET) != 0) ::_exit(EXIT_FAILURE);
  ::close(network);
  give_up_rights();
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // last: a change of user takes it back
  if (::getppid() != parent) ::_exit(EXIT_FAILURE);
  relay(listeners);
  ::_exit(EXIT_FAILURE);
}

}  // namespace

Result<Listener> listen_on(const Forward& forward) {
  auto both = bound_socket(forward, true);
  if (both) return Listener{std::move(*both), true, forward};
  if (both.error().kind == ErrorKind::kConflict) return Failure(both.error());
  DROVER_TRY(auto four, bound_socket(forward, false));  // a machine without IPv6
  return Listener{std::move(four), false, forward};
}

Result<UniqueFd> start_forwarder(const std::vector<Listener>& listeners, int network) {
  const auto parent = ::getpid();
  const auto pid = ::fork();
  if (pid < 0) return fail_errno("Failed to create a process", errno);
  if (pid == 0) become_forwarder(listeners, network, parent);
  auto process = open_process(pid);
  if (!process.valid()) return fail_errno("Failed to watch the forwarder", errno);
  return process;
}

}  // namespace drover::container
