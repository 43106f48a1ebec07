#include "cli/port_forward.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <nlohmann/json.hpp>
#include <semaphore>
#include <thread>

#include "base/files.h"
#include "cli/context.h"

namespace drover::cli {
namespace {

using nlohmann::json;

constexpr std::ptrdiff_t kAtOnce = 64;
constexpr int kHighestPort = 65535;
std::counting_semaphore<kAtOnce> free_threads{kAtOnce};

/// What has come at one socket goes to the other. False at its end, of which the other is told.
bool pass(int from, int to) {
  std::array<char, 64 << 10> buffer{};
  const auto count = ::read(from, buffer.data(), buffer.size());
  if (count < 0 && errno == EINTR) return true;
  if (count > 0 && write_all(to, {buffer.data(), static_cast<std::size_t>(count)}, "the connection"))
    return true;
  ::shutdown(to, SHUT_WR);
  return false;
}

/// Until both sides have said all.
void carry(int here, const Upgraded& task) {
  const int there = task.socket.get();
  if (!task.rest.empty() && !write_all(here, task.rest, "the connection")) return;
  std::array<pollfd, 2> ends{{{here, POLLIN, 0}, {there, POLLIN, 0}}};
  while (ends[0].fd >= 0 || ends[1].fd >= 0) {
    if (::poll(ends.data(), ends.size(), -1) < 0 && errno != EINTR) return;
    if (ends[0].fd >= 0 && ends[0].revents != 0 && !pass(here, there)) ends[0].fd = -1;
    // The daemon closes both ways at once.
    if (ends[1].fd >= 0 && ends[1].revents != 0 && !pass(there, here)) return;
  }
}

Failure no_pair(const std::string& text) {
  return fail(ErrorKind::kInvalid, fmt::format("'{}' is not a port", text),
              "write for example 8888, or 9000:8888 for another port here");
}

}  // namespace

Result<PortPair> parse_port_pair(const std::string& text) {
  const auto colon = text.find(':');
  PortPair pair{.there = colon == text.npos ? text : text.substr(colon + 1)};
  const auto here = text.substr(0, colon);
  const auto [end, failed] = std::from_chars(here.data(), here.data() + here.size(), pair.here);
  const bool is_number = failed == std::errc() && end == here.data() + here.size();
  if (pair.there.empty() || (colon != text.npos && !is_number) || pair.here < 0 || pair.here > kHighestPort)
    return no_pair(text);
  if (!is_number) pair.here = 0;
  return pair;
}

Result<PortForward> PortForward::open(Client client, const std::string& task, const PortPair& pair) {
  return open(std::move(client), task_target(task, "/forward?port=" + percent_encode(pair.there)),
              "drover-forward", pair.here);
}

Result<PortForward> PortForward::open(Client client, std::string target, std::string protocol, int here) {
  UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return fail_errno("Failed to make a socket", errno);
  const int on = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(here));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  if (::bind(socket.get(), any, size) != 0 || ::listen(socket.get(), SOMAXCONN) != 0) {
    const bool taken = errno == EADDRINUSE;
    auto error = fail_errno(fmt::format("Failed to listen at 127.0.0.1:{}", here), errno).value();
    if (taken) error.kind = ErrorKind::kConflict;
    error.hint = "choose another port here: 0 takes any that is free";
    return Failure(std::move(error));
  }
  if (::getsockname(socket.get(), any, &size) != 0) return fail_errno("Failed to look at a socket", errno);
  return PortForward(std::move(client), std::move(target), std::move(protocol), std::move(socket),
                     ntohs(address.sin_port));
}

Status PortForward::probe() const {
  return client_.upgrade(target_, json::object(), protocol_).map([](const Upgraded&) {});
}

Status PortForward::serve() const {
  while (true) {
    free_threads.acquire();
    UniqueFd accepted(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!accepted.valid()) {
      free_threads.release();
      if (errno == EINTR || errno == ECONNABORTED) continue;
      return fail_errno("Failed to accept a connection", errno);
    }
    std::thread([client = client_, target = target_, protocol = protocol_, connection = std::move(accepted)] {
      if (const auto there = client.upgrade(target, json::object(), protocol))
        carry(connection.get(), *there);
      else
        report_error(there.error());
      free_threads.release();
    }).detach();
  }
}

}  // namespace drover::cli
