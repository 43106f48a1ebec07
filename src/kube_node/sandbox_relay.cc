#include "kube_node/sandbox_relay.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <utility>

#include "base/files.h"
#include "http/client.h"
#include "kube/sandboxes/names.h"

namespace drover {
namespace {

constexpr std::chrono::seconds kToConnect{5};
constexpr std::chrono::minutes kRelaySilence{2};

/// What has come at `from` goes to `to`. False at its end.
Result<bool> pass_on(int from, int to) {
  std::array<char, 64 << 10> piece;
  const auto count = ::read(from, piece.data(), piece.size());
  if (count < 0)
    return errno == EINTR || errno == EAGAIN ? Result<bool>(true) : fail_errno("Failed to read", errno);
  DROVER_CHECK_OK(write_all(to, {piece.data(), static_cast<std::size_t>(count)}, "the other side"));
  return count > 0;
}

}  // namespace

Status relay_sandboxes(const std::string& kubelet) {
  const auto path = fmt::format("{}/plugins/{}/{}", kubelet, kube::kSandboxDriver, kube::kSandboxSocket);
  const auto socket = http::connect_unix(path, kToConnect);
  if (!socket)
    return fail(ErrorKind::kUnavailable,
                fmt::format("Failed to reach the node's agent at '{}': {}", path, socket.error().message()));
  while (true) {
    std::array<pollfd, 2> waits{{{STDIN_FILENO, POLLIN, 0}, {socket->get(), POLLIN, 0}}};
    const int found = ::poll(waits.data(), waits.size(),
                             static_cast<int>(std::chrono::milliseconds(kRelaySilence).count()));
    if (found < 0 && errno != EINTR) return fail_errno("Failed to wait", errno);
    if (found == 0) return {};
    for (const auto& [wait, to] : {std::pair(waits[0], socket->get()), {waits[1], STDOUT_FILENO}}) {
      if (wait.revents == 0) continue;
      DROVER_TRY(const bool goes_on, pass_on(wait.fd, to));
      if (!goes_on) return {};
    }
  }
}

}  // namespace drover
