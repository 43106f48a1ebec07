// What people write to a task, over one connection: the request is an HTTP upgrade, and after it frames go
// both ways (docs/api.md). They are the shim's business; here they are only carried.

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/write.hpp>

#include "api/async.h"
#include "api/native/handlers.h"
#include "api/typing.h"

namespace drover::api {
namespace {

using ShimSocket = asio::local::stream_protocol::socket;

constexpr const char* kInputProtocol = "drover-input";

asio::awaitable<void> carry_in(Typing& typing, const std::string& task, Duplex& client, ShimSocket& shim) {
  while (true) {
    const auto piece = co_await client.read();
    if (piece.empty()) co_return;
    const auto [failed, count] = co_await asio::async_write(shim, asio::buffer(piece), kAsTuple);
    if (failed) co_return;
    typing.typed(task);
  }
}

asio::awaitable<void> carry_out(Duplex& client, ShimSocket& shim) {
  std::array<char, 4096> buffer{};
  while (true) {
    const auto [failed, count] = co_await shim.async_read_some(asio::buffer(buffer), kAsTuple);
    if (failed) co_return;
    co_await client.write(std::string(buffer.data(), count));
  }
}

asio::awaitable<void> carry_input(Typing& typing, std::string task, std::shared_ptr<UniqueFd> socket,
                                  Duplex& client) {
  using namespace asio::experimental::awaitable_operators;
  ShimSocket shim(co_await asio::this_coro::executor);
  shim.assign(asio::local::stream_protocol(), socket->release());
  co_await (carry_in(typing, task, client, shim) || carry_out(client, shim));
}

}  // namespace

asio::awaitable<Result<Response>> write_to_task(const Services& services, const Request& request) {
  DROVER_CO_CHECK_OK(check_upgrade(request, kInputProtocol));
  const auto& caller = *request.caller;
  DROVER_CO_TRY(const auto record, services.daemon->task(caller, request.parameters.at("id")));
  const auto connect = [&](std::function<void(Result<std::shared_ptr<UniqueFd>>)> done) {
    services.daemon->connect_input(caller, record.task.id, std::move(done));
  };
  DROVER_CO_TRY(auto socket, co_await callback_result<Result<std::shared_ptr<UniqueFd>>>(connect));
  co_return upgrade_response(kInputProtocol,
                             [&typing = *services.typing, task = record.task.id, socket = std::move(socket)](
                                 Duplex& client) { return carry_input(typing, task, socket, client); });
}

}  // namespace drover::api
