#include "connection.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdlib>
#include <stdexcept>

namespace drover::bench {
namespace {

constexpr std::size_t kPiece = 1 << 20;

std::size_t receive_some(int socket, std::string& buffer, std::size_t filled) {
  if (buffer.size() < filled + kPiece) buffer.resize(std::max(buffer.size() * 2, filled + kPiece));
  const auto count = ::recv(socket, buffer.data() + filled, buffer.size() - filled, 0);
  if (count <= 0) throw std::runtime_error("The server has closed the connection");
  return filled + static_cast<std::size_t>(count);
}

}  // namespace

UniqueFd connect_to(std::uint16_t port) {
  UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    throw std::runtime_error(fmt::format("Nobody listens on port {}", port));
  const int yes = 1;
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  return socket;
}

void send_all(int socket, std::string_view bytes) {
  while (!bytes.empty()) {
    const auto count = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count <= 0) throw std::runtime_error("The server takes no more");
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
}

Answer Connection::ask(std::string_view method, const std::string& target, std::string_view body,
                       std::string_view accept) {
  auto head = fmt::format("{} {} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n", method, target, port_);
  if (!accept.empty()) head += fmt::format("Accept: {}\r\n", accept);
  if (!body.empty())
    head += fmt::format("Content-Type: application/json\r\nContent-Length: {}\r\n", body.size());
  send_all(socket_.get(), head + "\r\n" + std::string(body));
  std::size_t filled = 0, end = std::string::npos;
  while (end == std::string::npos) {
    filled = receive_some(socket_.get(), buffer_, filled);
    end = std::string_view(buffer_).substr(0, filled).find("\r\n\r\n");
  }
  const std::string_view header(buffer_.data(), end);
  constexpr std::string_view kLength = "Content-Length: ";
  const auto length = header.find(kLength);
  const auto size =
      length == header.npos ? 0 : std::strtoull(header.data() + length + kLength.size(), nullptr, 10);
  const auto begin = end + 4;
  while (filled < begin + size) filled = receive_some(socket_.get(), buffer_, filled);
  return {std::atoi(buffer_.c_str() + 9), buffer_.substr(begin, size)};
}

}  // namespace drover::bench
