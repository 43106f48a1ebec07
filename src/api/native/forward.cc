// A connection to a port of a task, from wherever its owner is: the request is an HTTP upgrade, and after it
// bytes go both ways.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/write.hpp>

#include "api/async.h"
#include "api/native/handlers.h"
#include "control/record.h"

namespace drover::api {
namespace {

using asio::ip::tcp;
using namespace asio::experimental::awaitable_operators;

constexpr const char* kForwardProtocol = "drover-forward";
constexpr std::chrono::seconds kConnecting{10};
/// Who has said all may wait so long for the rest of the answer.
constexpr std::chrono::seconds kHalfClosed{60};
constexpr std::size_t kForwarded = 64 << 10;

/// Where the machine has the port that is meant: by its number inside or on the machine, or by its name.
/// Only ports that the task was given: others may be anybody's.
Result<std::uint16_t> forwarded_port(const control::TaskRecord& record, const std::string& wanted) {
  if (record.state != control::TaskState::kRunning)
    return fail(ErrorKind::kConflict,
                fmt::format("The task '{}' is {}", record.task.id, control::to_string(record.state)),
                "connections are made to tasks that run");
  std::vector<std::string> known;
  const auto& ports = record.task.network.ports;
  for (std::size_t i = 0; i < std::min(ports.size(), record.ports.size()); ++i) {
    if (ports[i].protocol == workload::PortProtocol::kUdp) continue;
    const bool bridged = record.task.network.mode == workload::NetworkMode::kBridge;
    const auto inside = bridged && ports[i].container_port != 0 ? ports[i].container_port : record.ports[i];
    if (wanted == std::to_string(inside) || wanted == std::to_string(record.ports[i]) ||
        (!ports[i].name.empty() && wanted == ports[i].name))
      return static_cast<std::uint16_t>(record.ports[i]);
    known.push_back(std::to_string(inside));
  }
  return fail(ErrorKind::kNotFound, fmt::format("The task '{}' has no port '{}'", record.task.id, wanted),
              known.empty() ? fmt::format("start it with --publish {}", wanted)
                            : fmt::format("it has {}", fmt::join(known, ", ")));
}

asio::awaitable<Result<std::shared_ptr<tcp::socket>>> connect_to(std::uint16_t port) {
  const auto executor = co_await asio::this_coro::executor;
  auto socket = std::make_shared<tcp::socket>(executor);
  asio::steady_timer late(executor, kConnecting);
  const auto done = co_await (socket->async_connect({asio::ip::address_v4::loopback(), port}, kAsTuple) ||
                              late.async_wait(kAsTuple));
  if (done.index() == 0 && !std::get<0>(std::get<0>(done))) co_return socket;
  co_return fail(ErrorKind::kUnavailable, "Nobody listens at that port of the task",
                 "wait until its program does, at 127.0.0.1 or at all addresses");
}

asio::awaitable<void> to_task(Duplex& client, tcp::socket& task) {
  for (auto piece = co_await client.read(); !piece.empty(); piece = co_await client.read()) {
    const auto [failed, count] = co_await asio::async_write(task, asio::buffer(piece), kAsTuple);
    if (failed) co_return;
  }
  boost::system::error_code ignored;
  task.shutdown(tcp::socket::shutdown_send, ignored);
  asio::steady_timer rest(co_await asio::this_coro::executor, kHalfClosed);
  (void)co_await rest.async_wait(kAsTuple);
}

asio::awaitable<void> from_task(Duplex& client, tcp::socket& task) {
  std::string buffer(kForwarded, '\0');
  while (true) {
    const auto [failed, count] = co_await task.async_read_some(asio::buffer(buffer), kAsTuple);
    if (failed) co_return;
    co_await client.write(buffer.substr(0, count));
  }
}

asio::awaitable<void> carry_port(std::shared_ptr<tcp::socket> task, Duplex& client) {
  co_await (to_task(client, *task) || from_task(client, *task));
}

}  // namespace

asio::awaitable<Result<Response>> forward_to_task(const Services& services, const Request& request) {
  DROVER_CO_CHECK_OK(check_upgrade(request, kForwardProtocol));
  Query query(request);
  const auto wanted = query.text("port");
  DROVER_CO_CHECK_OK(query.finish());
  DROVER_CO_TRY(const auto record, services.daemon->task(*request.caller, request.parameters.at("id")));
  DROVER_CO_TRY(const auto port, forwarded_port(record, wanted));
  DROVER_CO_TRY(auto socket, co_await connect_to(port));
  co_return upgrade_response(
      kForwardProtocol, [socket = std::move(socket)](Duplex& client) { return carry_port(socket, client); });
}

}  // namespace drover::api
