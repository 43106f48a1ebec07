#pragma once

// An HTTP server on loopback that answers as a test says, with or without TLS. One thread for each
// connection.

#include <openssl/ssl.h>

#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/fd.h"
#include "engine/testing/loopback.h"
#include "kube/client/testing/certificates.h"

namespace drover::kube::testing {

struct ScriptedRequest {
  std::string method;
  std::string target;
  std::map<std::string, std::string> headers;  ///< names in lower case
  std::string body;
};

/// One client's connection, for handlers.
class ScriptedReply {
 public:
  ScriptedReply(int fd, SSL* tls) : fd_(fd), tls_(tls) {}

  /// A whole answer; `headers` each end with "\r\n".
  void send(int status, const std::string& body, const std::string& headers = "");
  /// An answer whose end is that of the connection, and pieces of it.
  void begin_stream();
  bool write(std::string_view bytes);
  /// Closes the connection after what was said.
  void end() { ends_ = true; }
  bool ends() const { return ends_; }

 private:
  int fd_;
  SSL* tls_;
  bool ends_ = false;
};

class ScriptedServer {
 public:
  /// Called on the connection's thread for each request. A handler that says nothing closes the connection.
  using Handler = std::function<void(const ScriptedRequest&, ScriptedReply&)>;
  explicit ScriptedServer(Handler handler);
  /// With TLS. `client_authority`, if it is named, must have signed what clients show.
  ScriptedServer(const Identity& identity, Handler handler, const std::string& client_authority = "");
  ScriptedServer(const ScriptedServer&) = delete;
  ScriptedServer& operator=(const ScriptedServer&) = delete;
  /// Ends all connections, and waits for their handlers.
  ~ScriptedServer();

  std::string url() const;
  std::vector<ScriptedRequest> requests() const;
  /// How many have been opened so far.
  std::size_t connections() const;
  /// All connections of now end.
  void drop();

 private:
  void serve();
  void serve_client(int fd);
  bool read_request(int fd, SSL* tls, ScriptedRequest& request);

  Handler handler_;
  SSL_CTX* tls_ = nullptr;
  engine::testing::LoopbackListener listener_;
  mutable std::mutex mutex_;
  std::vector<ScriptedRequest> requests_;
  std::vector<UniqueFd> clients_;
  std::vector<std::thread> handlers_;
  std::thread thread_;
};

}  // namespace drover::kube::testing
