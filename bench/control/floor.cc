#include "floor.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>

#include "connection.h"

namespace drover::bench {

std::vector<double> time_bare_bytes(std::size_t bytes, int rounds) {
  const UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (::bind(listener.get(), generic, size) != 0 || ::listen(listener.get(), 1) != 0 ||
      ::getsockname(listener.get(), generic, &size) != 0)
    throw std::runtime_error("Failed to listen on loopback");
  const auto client = connect_to(ntohs(address.sin_port));
  std::thread server([&] {
    const UniqueFd peer(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    const std::string ready(bytes, 'x');
    char request = 0;
    try {
      while (::recv(peer.get(), &request, 1, 0) == 1) send_all(peer.get(), ready);
    } catch (const std::runtime_error&) {
      // The client has gone.
    }
  });
  std::vector<double> times;
  std::string buffer(1 << 20, '\0');
  for (int round = 0; round < rounds; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    send_all(client.get(), "?");
    for (std::size_t left = bytes; left > 0;) {
      const auto count = ::recv(client.get(), buffer.data(), buffer.size(), 0);
      if (count <= 0) break;
      left -= static_cast<std::size_t>(count);
    }
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
    times.push_back(took.count());
  }
  ::shutdown(client.get(), SHUT_RDWR);
  server.join();
  return times;
}

}  // namespace drover::bench
