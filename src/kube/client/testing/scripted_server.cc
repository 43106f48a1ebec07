#include "kube/client/testing/scripted_server.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>

#include "base/text.h"

namespace drover::kube::testing {
namespace {

int read_some(int fd, SSL* tls, char* bytes, int size) {
  return tls != nullptr ? SSL_read(tls, bytes, size)
                        : static_cast<int>(::recv(fd, bytes, static_cast<std::size_t>(size), 0));
}

SSL_CTX* tls_context(const Identity& identity, const std::string& client_authority) {
  std::signal(SIGPIPE, SIG_IGN);  // NOLINT(cert-err33-c): OpenSSL writes without MSG_NOSIGNAL
  SSL_CTX* context = SSL_CTX_new(TLS_server_method());
  const auto certificate = read_certificate(identity.certificate);
  const auto key = read_key(identity.key);
  EXPECT_EQ(SSL_CTX_use_certificate(context, certificate.get()), 1);
  EXPECT_EQ(SSL_CTX_use_PrivateKey(context, key.get()), 1);
  if (!client_authority.empty()) {
    const auto authority = read_certificate(client_authority);
    X509_STORE_add_cert(SSL_CTX_get_cert_store(context), authority.get());
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  }
  return context;
}

}  // namespace

void ScriptedReply::send(int status, const std::string& body, const std::string& headers) {
  write(fmt::format("HTTP/1.1 {} x\r\nContent-Type: application/json\r\n{}Content-Length: {}\r\n\r\n{}",
                    status, headers, body.size(), body));
}

void ScriptedReply::begin_stream() {
  ends_ = true;
  write("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n");
}

bool ScriptedReply::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const auto count = tls_ != nullptr
                           ? SSL_write(tls_, bytes.data(), static_cast<int>(bytes.size()))
                           : static_cast<int>(::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL));
    if (count <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

ScriptedServer::ScriptedServer(Handler handler) : handler_(std::move(handler)) {
  thread_ = std::thread([this] { serve(); });
}

ScriptedServer::ScriptedServer(const Identity& identity, Handler handler, const std::string& client_authority)
    : handler_(std::move(handler)), tls_(tls_context(identity, client_authority)) {
  thread_ = std::thread([this] { serve(); });
}

ScriptedServer::~ScriptedServer() {
  listener_.shut();
  thread_.join();
  drop();
  for (auto& handler : handlers_) handler.join();
  SSL_CTX_free(tls_);
}

std::string ScriptedServer::url() const {
  return fmt::format("{}://127.0.0.1:{}", tls_ != nullptr ? "https" : "http", listener_.port);
}

std::vector<ScriptedRequest> ScriptedServer::requests() const {
  const std::lock_guard lock(mutex_);
  return requests_;
}

std::size_t ScriptedServer::connections() const {
  const std::lock_guard lock(mutex_);
  return clients_.size();
}

void ScriptedServer::drop() {
  const std::lock_guard lock(mutex_);
  for (const auto& client : clients_) ::shutdown(client.get(), SHUT_RDWR);
}

void ScriptedServer::serve() {
  while (true) {
    auto client = listener_.accept();
    if (!client.valid()) return;
    const std::lock_guard lock(mutex_);
    handlers_.emplace_back([this, fd = client.get()] { serve_client(fd); });
    clients_.push_back(std::move(client));
  }
}

void ScriptedServer::serve_client(int fd) {
  SSL* tls = tls_ != nullptr ? SSL_new(tls_) : nullptr;
  if (tls != nullptr) SSL_set_fd(tls, fd);
  if (tls == nullptr || SSL_accept(tls) == 1) {
    ScriptedRequest request;
    ScriptedReply reply(fd, tls);
    while (!reply.ends() && read_request(fd, tls, request)) {
      {
        const std::lock_guard lock(mutex_);
        requests_.push_back(request);
      }
      handler_(request, reply);
    }
  }
  if (tls != nullptr) SSL_shutdown(tls);
  SSL_free(tls);
  ::shutdown(fd, SHUT_RDWR);
}

bool ScriptedServer::read_request(int fd, SSL* tls, ScriptedRequest& request) {
  std::string text;
  std::array<char, 4096> buffer;
  std::size_t whole = std::string::npos;
  while (text.size() < whole) {
    const auto count = read_some(fd, tls, buffer.data(), static_cast<int>(buffer.size()));
    if (count <= 0) return false;
    text.append(buffer.data(), static_cast<std::size_t>(count));
    const auto end = text.find("\r\n\r\n");
    if (end == std::string::npos || whole != std::string::npos) continue;
    request = {};
    std::istringstream lines(text.substr(0, end));
    lines >> request.method >> request.target;
    for (std::string line; std::getline(lines, line);) {
      const auto colon = line.find(": ");
      if (colon == std::string::npos) continue;
      request.headers[lower(line.substr(0, colon))] =
          line.substr(colon + 2, line.size() - colon - 2 - (line.ends_with('\r') ? 1 : 0));
    }
    const auto length = request.headers.find("content-length");
    whole = end + 4 + (length == request.headers.end() ? 0 : std::stoul(length->second));
  }
  request.body = text.substr(text.find("\r\n\r\n") + 4);
  return true;
}

}  // namespace drover::kube::testing
