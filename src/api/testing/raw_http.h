#pragma once

// HTTP as bytes, for tests that must send what no well-behaved client sends.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "base/fd.h"

namespace drover::api::testing {

class RawConnection {
 public:
  static RawConnection to_unix(const std::string& path) {
    sockaddr_un address{AF_UNIX, {}};
    std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
    return RawConnection(AF_UNIX, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  }
  static RawConnection to_loopback(std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return RawConnection(AF_INET, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  }

  bool connected() const { return connected_; }
  /// False when the other end has closed.
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const auto count = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(count));
    }
    return true;
  }
  /// Everything until the other end closes, or until `enough` was seen.
  std::string receive(std::string_view enough = "") {
    std::string all;
    std::array<char, 4096> buffer;
    while (enough.empty() || all.find(enough) == std::string::npos) {
      const auto count = ::recv(fd_.get(), buffer.data(), buffer.size(), 0);
      if (count <= 0) break;
      all.append(buffer.data(), static_cast<std::size_t>(count));
    }
    return all;
  }
  /// What is there; waits for the first byte. "" when the other end has closed.
  std::string receive_some() {
    std::array<char, 4096> buffer;
    const auto count = ::recv(fd_.get(), buffer.data(), buffer.size(), 0);
    return count <= 0 ? "" : std::string(buffer.data(), static_cast<std::size_t>(count));
  }
  /// Whether something is there by now.
  bool has_answer() const {
    char byte = 0;
    return ::recv(fd_.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
  }
  void close() { fd_.reset(); }

 private:
  RawConnection(int family, const sockaddr* address, socklen_t size)
      : fd_(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const timeval patience{20, 0};
    ::setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    connected_ = ::connect(fd_.get(), address, size) == 0;
  }
  UniqueFd fd_;
  bool connected_ = false;
};

/// "200" of "HTTP/1.1 200 OK…".
inline int status_of(const std::string& answer) {
  return answer.size() > 12 ? std::stoi(answer.substr(9, 3)) : 0;
}
inline std::string body_of(const std::string& answer) {
  const auto end = answer.find("\r\n\r\n");
  return end == std::string::npos ? "" : answer.substr(end + 4);
}

}  // namespace drover::api::testing
