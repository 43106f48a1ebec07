#pragma once

// The HTTP server of the daemon: on a unix socket, where the kernel says who calls, and if asked for on TCP,
// where every request shows a secret. Runs on the io_context it is given, which one thread runs (the control
// strand); what may block is done on threads of its own (workers.h). Not thread safe.

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "api/access.h"
#include "api/executor_tokens.h"
#include "api/logins.h"
#include "api/router.h"
#include "base/result.h"
#include "base/user_limits.h"
#include "engine/api.h"

namespace boost::asio {
class io_context;
}

namespace drover::api {

/// What one client may take up. Nothing that comes from outside is without a limit.
struct Limits {
  std::uint32_t header_bytes = 16 * 1024;
  std::uint64_t body_bytes = 1024 * 1024;  ///< a route may allow more
  /// Between requests. Long: clients of the Mesos API keep a connection open for what they may send later,
  /// and start over when they lose it.
  std::chrono::seconds idle_time{3600};
  std::chrono::seconds header_time{30};  ///< from its first byte to its last
  std::chrono::seconds body_time{30};
  std::chrono::seconds write_time{60};  ///< for one piece of an answer
  std::size_t connections = 4096;
  std::size_t connections_per_peer = 2048;  ///< of one uid, or of one address over TCP; root is exempt
  std::size_t connections_for_root = 64;    ///< of all, these are kept for root
  /// Before the answer to a wrong secret: with the connections of an address, the limit of its guesses.
  std::chrono::milliseconds wrong_secret_pause{1000};
};

struct ServerOptions {
  std::string socket_path;  ///< its folder is made, 0755; the socket is 0666
  std::optional<ListenAddress> listen;
  bool insecure_listen = false;  ///< also on an address that is not loopback: secrets go there as they are
  std::vector<std::string> host_names;  ///< that `Host` may have besides the machine's own
  std::vector<Credential> credentials;  ///< of TCP; set_credentials() puts others in their place
  /// Whom requests over TCP act for that show no secret, as clients of systems do that knew none. Everybody
  /// on this machine may then be this user: only with a loopback address.
  std::optional<User> anonymous;
  /// Of executors that frameworks bring, over TCP. None: they are refused.
  std::optional<ExecutorTokens> executor_tokens;
  std::optional<Logins> logins;  ///< of the web page; none: it cannot be used
  /// They are in pods, and find it there: HOST:PORT, which leads to `listen`; "": they can't.
  std::optional<std::string> pods_endpoint;
  std::string version;
  std::function<void(const std::string&)> log;  ///< a line about who tries to come in; empty: nobody is told
  /// A line about each request that may change something: who, what, and the answer's status. Empty: nobody
  /// is told.
  std::function<void(const std::string&)> audit;
  /// Frameworks that do not know GPUs are offered nothing of a machine that has some.
  bool filter_gpu_resources = true;
  Limits limits;
  std::uint64_t answer_bytes = UserLimits{}.answer_bytes;  ///< AnswerShares, of each user but root
  engine::Images* images = nullptr;  ///< outlives the server; nullptr: the machine keeps none
  workload::NetworkMode default_network = workload::NetworkMode::kHost;  ///< of tasks that name none
  MeasureGpus measure_gpus;                                              ///< empty: nobody is told of metrics
  AddFacts add_facts;                                                    ///< may be empty
  bool marathon_strict =
      false;  ///< refuses what Marathon refuses and Drover can do: GPUs in DOCKER containers
};

class Server {
 public:
  /// Listens when it returns. A socket file that a dead daemon left is replaced; a living one is an error.
  /// `daemon` and `context` outlive the server.
  static Result<std::unique_ptr<Server>> start(boost::asio::io_context& context, engine::Api& daemon,
                                               ServerOptions options);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// Answers as if the caller had asked on a connection of his; `done` is called later, on the strand, unless
  /// the daemon ends before. What has a live answer is not for this.
  void ask(const engine::Caller& caller, const std::string& method, const std::string& target,
           std::string body, std::function<void(Response)> done);
  /// Takes no more connections, lets requests in progress finish, ends live answers.
  void stop();
  /// For each request over TCP that comes from now on.
  void set_credentials(std::vector<Credential> credentials);
  /// With the port that the kernel chose, when it was asked to.
  std::optional<ListenAddress> tcp_address() const;

 private:
  struct Parts;
  explicit Server(std::shared_ptr<Parts> parts);
  std::shared_ptr<Parts> parts_;
};

}  // namespace drover::api
