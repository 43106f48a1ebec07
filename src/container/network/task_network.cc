#include "container/network/task_network.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

#include "base/pidfd.h"
#include "base/process.h"
#include "base/spawn.h"
#include "container/network/forwarder.h"

namespace drover::container {
namespace {

constexpr const char* kGateway = "slirp4netns";
constexpr int kReady = 3;
constexpr int kExit = 4;
constexpr int kGatewayTimeout = 10'000;  // ms

Status bring_up_loopback() {
  const UniqueFd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  std::strncpy(request.ifr_name, "lo", sizeof request.ifr_name - 1);
  if (!socket.valid() || ::ioctl(socket.get(), SIOCGIFFLAGS, &request) != 0)
    return fail_errno("Failed to look at the loopback device", errno);
  request.ifr_flags = static_cast<short>(request.ifr_flags | IFF_UP | IFF_RUNNING);
  if (::ioctl(socket.get(), SIOCSIFFLAGS, &request) != 0)
    return fail_errno("Failed to bring up the loopback device", errno);
  return {};
}

/// A port below 1024 is nothing special in a network that one container has for itself.
void open_low_ports() {
  const UniqueFd setting(::open("/proc/sys/net/ipv4/ip_unprivileged_port_start", O_WRONLY | O_CLOEXEC));
  if (setting.valid()) (void)write_all(setting.get(), "0", "ip_unprivileged_port_start");
}

/// This process is back in its own namespace when it returns.
Result<UniqueFd> make_namespace() {
  const UniqueFd own(::open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC));
  if (!own.valid() || ::unshare(CLONE_NEWNET) != 0)
    return fail_errno("Failed to create a network namespace", errno);
  UniqueFd made(::open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC));
  const auto up = bring_up_loopback();
  open_low_ports();
  if (!made.valid() || ::setns(own.get(), CLONE_NEWNET) != 0)
    return fail_errno("Failed to return from the network namespace", errno);
  DROVER_CHECK_OK(up);
  return made;
}

Status name_namespace(const Directory& task, const std::string& name, int network) {
  const UniqueFd place(::openat(task.fd(), name.c_str(), O_RDONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  const auto path = fmt::format("{}/{}", task.path(), name);
  if (!place.valid() ||
      ::mount(descriptor_path(network).c_str(), path.c_str(), nullptr, MS_BIND, nullptr) != 0)
    return fail_errno(fmt::format("Failed to mount '{}'", path), errno);
  return {};
}

Result<Spawned> spawn_gateway(const std::string& program, const std::string& network, int ready, int exit) {
  ChildDescriptors descriptors;
  for (const int standard : {0, 1, 2}) descriptors.open("/dev/null", standard);
  descriptors.give(ready, kReady);
  descriptors.give(exit, kExit);
  descriptors.close_from(kExit + 1);
  return spawn({.program = program,
                .arguments = {program, "--configure", "--mtu=65520", "--disable-host-loopback",
                              "--enable-sandbox", "--enable-seccomp", fmt::format("--ready-fd={}", kReady),
                              fmt::format("--exit-fd={}", kExit), "--netns-type=path", network, "tap0"},
                .environment = minimal_environment()},
               descriptors);
}

/// It writes one byte when the way out is there; it closes the pipe when it gives up.
bool is_ready(int pipe) {
  pollfd waited{pipe, POLLIN, 0};
  char byte = 0;
  return ::poll(&waited, 1, kGatewayTimeout) == 1 && ::read(pipe, &byte, 1) == 1;
}

void end(const UniqueFd& process) {
  if (!process.valid()) return;
  send_signal(process, SIGKILL);
  siginfo_t info{};
  ::waitid(static_cast<idtype_t>(P_PIDFD), static_cast<id_t>(process.get()), &info, WEXITED);
}

}  // namespace

Result<TaskNetwork> TaskNetwork::make(const NetworkPlan& plan, const Directory& task,
                                      const std::string& name) {
  std::vector<Listener> listeners;
  for (const auto& forward : plan.forwards) {
    DROVER_TRY(auto listener, listen_on(forward));
    listeners.push_back(std::move(listener));
  }
  DROVER_TRY(const auto network, make_namespace());
  DROVER_CHECK_OK(name_namespace(task, name, network.get()));
  TaskNetwork made;
  made.find_way_out(fmt::format("{}/{}", task.path(), name));
  if (!listeners.empty()) {
    DROVER_TRY(made.forwarder_, start_forwarder(listeners, network.get()));
  }
  return made;
}

void TaskNetwork::find_way_out(const std::string& network) {
  shortcoming_ =
      fmt::format("nobody outside of the container can be reached: '{}' is not on this machine", kGateway);
  const auto program = find_program(kGateway);
  if (!program) return;
  shortcoming_ =
      fmt::format("nobody outside of the container can be reached: '{}' does not work here", kGateway);
  auto ready = make_pipe(kExit + 1);
  auto alive = make_pipe(kExit + 1);
  if (!ready || !alive) return;
  auto gateway = spawn_gateway(*program, network, ready->write.get(), alive->read.get());
  if (!gateway) return;
  gateway_ = std::move(gateway->process);
  lifeline_ = std::move(alive->write);
  ready->write.reset();
  if (is_ready(ready->read.get())) shortcoming_.clear();
}

TaskNetwork::~TaskNetwork() {
  end(forwarder_);
  end(gateway_);
}

}  // namespace drover::container
