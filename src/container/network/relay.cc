#include "container/network/relay.h"

#include <array>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/udp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <map>
#include <memory>
#include <vector>

#include "base/as_tuple.h"

namespace drover::container {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using asio::ip::udp;
using boost::system::error_code;

constexpr std::size_t kBuffer = 64 << 10;
constexpr std::size_t kMostPeers = 1024;  ///< of one UDP port
constexpr auto kPeerSilence = std::chrono::seconds(120);
constexpr auto kSweep = std::chrono::seconds(10);
constexpr auto kNoDescriptors = std::chrono::milliseconds(100);

/// Where a program inside may listen, the likeliest first.
std::vector<asio::ip::address> addresses_inside() {
  return {asio::ip::address_v4::loopback(), asio::ip::make_address(kContainerAddress),
          asio::ip::address_v6::loopback()};
}

// TCP

struct Connection {
  tcp::socket outside;
  tcp::socket inside;
};

/// One direction, until its end. A half-closed connection stays open the other way.
asio::awaitable<void> pump(std::shared_ptr<Connection> both, tcp::socket& from, tcp::socket& to) {
  std::vector<char> buffer(kBuffer);
  while (true) {
    const auto [failed, count] = co_await from.async_read_some(asio::buffer(buffer), kAsTuple);
    if (failed == asio::error::eof) break;
    if (failed) {
      error_code ignored;
      both->outside.close(ignored);
      both->inside.close(ignored);
      co_return;
    }
    const auto [unsent, sent] = co_await asio::async_write(to, asio::buffer(buffer.data(), count), kAsTuple);
    if (unsent) {
      error_code ignored;
      both->outside.close(ignored);
      both->inside.close(ignored);
      co_return;
    }
  }
  error_code ignored;
  to.shutdown(tcp::socket::shutdown_send, ignored);
}

asio::awaitable<void> carry(tcp::socket outside, std::uint16_t port) {
  const auto executor = co_await asio::this_coro::executor;
  for (const auto& address : addresses_inside()) {
    tcp::socket inside(executor);
    const auto [refused] = co_await inside.async_connect({address, port}, kAsTuple);
    if (refused) continue;
    error_code ignored;
    for (auto* socket : {&outside, &inside}) {
      socket->set_option(tcp::no_delay(true), ignored);
      socket->set_option(asio::socket_base::keep_alive(true), ignored);
    }
    auto both = std::make_shared<Connection>(Connection{std::move(outside), std::move(inside)});
    asio::co_spawn(executor, pump(both, both->outside, both->inside), asio::detached);
    asio::co_spawn(executor, pump(both, both->inside, both->outside), asio::detached);
    co_return;
  }
  // Nobody listens inside: the client hears of it as it would from the machine itself.
  error_code ignored;
  outside.set_option(asio::socket_base::linger(true, 0), ignored);
}

asio::awaitable<void> accept_all(tcp::acceptor acceptor, std::uint16_t port) {
  const auto executor = co_await asio::this_coro::executor;
  asio::steady_timer timer(executor);
  while (true) {
    auto [failed, client] = co_await acceptor.async_accept(kAsTuple);
    if (!failed) {
      asio::co_spawn(executor, carry(std::move(client), port), asio::detached);
      continue;
    }
    timer.expires_after(kNoDescriptors);
    (void)co_await timer.async_wait(kAsTuple);
  }
}

// UDP

/// One port. Every peer outside has a socket of its own inside, so that answers find their way.
class Datagrams {
 public:
  Datagrams(asio::io_context& context, udp::socket socket, std::uint16_t port)
      : socket_(std::move(socket)), inside_(asio::ip::address_v4::loopback(), port), timer_(context) {}

  asio::awaitable<void> receive_all() {
    std::vector<char> buffer(kBuffer);
    while (true) {
      udp::endpoint peer;
      const auto [failed, count] = co_await socket_.async_receive_from(asio::buffer(buffer), peer, kAsTuple);
      if (failed) continue;
      if (const auto link = link_to(peer)) {
        link->last = std::chrono::steady_clock::now();
        (void)co_await link->socket.async_send(asio::buffer(buffer.data(), count), kAsTuple);
      }
    }
  }

  asio::awaitable<void> forget_silent() {
    while (true) {
      timer_.expires_after(kSweep);
      (void)co_await timer_.async_wait(kAsTuple);
      const auto oldest = std::chrono::steady_clock::now() - kPeerSilence;
      for (auto link = links_.begin(); link != links_.end();) {
        const bool silent = link->second->last < oldest;
        error_code ignored;
        if (silent) link->second->socket.close(ignored);
        link = silent ? links_.erase(link) : std::next(link);
      }
    }
  }

 private:
  struct Link {
    udp::socket socket;
    std::chrono::steady_clock::time_point last;
  };

  std::shared_ptr<Link> link_to(const udp::endpoint& peer) {
    if (const auto known = links_.find(peer); known != links_.end()) return known->second;
    if (links_.size() >= kMostPeers) return nullptr;
    auto link = std::make_shared<Link>(Link{udp::socket(socket_.get_executor()), {}});
    error_code failed;
    link->socket.connect(inside_, failed);
    if (failed) return nullptr;
    links_[peer] = link;
    asio::co_spawn(socket_.get_executor(), answer(link, peer), asio::detached);
    return link;
  }

  asio::awaitable<void> answer(std::shared_ptr<Link> link, udp::endpoint peer) {
    std::vector<char> buffer(kBuffer);
    while (link->socket.is_open()) {
      const auto [failed, count] = co_await link->socket.async_receive(asio::buffer(buffer), kAsTuple);
      if (failed == asio::error::operation_aborted || failed == asio::error::bad_descriptor) co_return;
      if (failed) continue;  // nobody listens inside at the moment
      link->last = std::chrono::steady_clock::now();
      (void)co_await socket_.async_send_to(asio::buffer(buffer.data(), count), peer, kAsTuple);
    }
  }

  udp::socket socket_;
  udp::endpoint inside_;
  asio::steady_timer timer_;
  std::map<udp::endpoint, std::shared_ptr<Link>> links_;
};

}  // namespace

void relay(const std::vector<Listener>& listeners) {
  asio::io_context context(1);
  std::vector<std::unique_ptr<Datagrams>> datagrams;
  for (const auto& listener : listeners) {
    const auto port = static_cast<std::uint16_t>(listener.forward.container_port);
    const int socket = listener.socket.get();
    if (!listener.forward.udp) {
      const auto protocol = listener.ipv6 ? tcp::v6() : tcp::v4();
      asio::co_spawn(context, accept_all(tcp::acceptor(context, protocol, socket), port), asio::detached);
      continue;
    }
    const auto protocol = listener.ipv6 ? udp::v6() : udp::v4();
    datagrams.push_back(std::make_unique<Datagrams>(context, udp::socket(context, protocol, socket), port));
    asio::co_spawn(context, datagrams.back()->receive_all(), asio::detached);
    asio::co_spawn(context, datagrams.back()->forget_silent(), asio::detached);
  }
  context.run();
}

}  // namespace drover::container
