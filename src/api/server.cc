#include "api/server.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/host_name.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cerrno>
#include <filesystem>
#include <map>
#include <set>
#include <thread>
#include <variant>

#include "api/async.h"
#include "api/marathon/parts.h"
#include "api/mesos/master.h"
#include "api/routes.h"
#include "api/session.h"
#include "api/typing.h"
#include "api/workers.h"
#include "base/files.h"

namespace drover::api {
namespace {

using asio::ip::tcp;
using asio::local::stream_protocol;

constexpr std::chrono::milliseconds kAcceptPause{100};
constexpr std::chrono::milliseconds kPollPause{20};
constexpr std::chrono::milliseconds kSocketsOfTheDead{1000};

/// Counts connections by who holds them: a uid, or over TCP an address.
using Peer = std::variant<uid_t, asio::ip::address>;

Result<stream_protocol::endpoint> unix_endpoint(const std::string& path) {
  if (path.empty() || path.size() >= sizeof(sockaddr_un::sun_path))
    return fail(ErrorKind::kInvalid,
                fmt::format("The socket path '{}' is not of 1 to {} characters", path,
                            sizeof(sockaddr_un::sun_path) - 1),
                "choose a shorter one with --socket");
  return stream_protocol::endpoint(path);
}

/// Removes a socket file that nobody serves any more.
Status remove_stale_socket(asio::io_context& context, const stream_protocol::endpoint& endpoint) {
  const auto path = endpoint.path();
  struct stat info{};
  if (::lstat(path.c_str(), &info) != 0) return {};
  if (!S_ISSOCK(info.st_mode))
    return fail(ErrorKind::kConflict, fmt::format("'{}' is there already and is not a socket", path),
                "remove it or choose another path with --socket");
  boost::system::error_code error;
  stream_protocol::socket probe(context);
  probe.connect(endpoint, error);
  if (!error)
    return fail(ErrorKind::kConflict, fmt::format("Another daemon serves on '{}'", path),
                "stop it first or choose another path with --socket");
  if (error != asio::error::connection_refused)
    return fail_errno(fmt::format("Failed to look who serves on '{}'", path), error.value());
  if (::unlink(path.c_str()) != 0) return fail_errno(fmt::format("Failed to remove '{}'", path), errno);
  return {};
}

/// No folder above it is made: one that is not there is a mistake in the path.
Status make_folder_of(const std::string& path) {
  const auto folder = std::filesystem::path(path).parent_path();
  const auto above = folder.parent_path();
  std::error_code ignored;
  if (folder.empty()) return {};
  if (!above.empty() && !std::filesystem::exists(above, ignored))
    return fail(ErrorKind::kNotFound,
                fmt::format("The socket cannot be at '{}': there is no folder '{}'", path, above.string()),
                "make that folder, or choose another path with --socket");
  return Directory::create(folder, 0755).map([](const Directory&) {});
}

Result<stream_protocol::acceptor> listen_unix(asio::io_context& context, const std::string& path) {
  DROVER_TRY(const auto endpoint, unix_endpoint(path));
  DROVER_CHECK_OK(make_folder_of(path));
  DROVER_CHECK_OK(remove_stale_socket(context, endpoint));
  stream_protocol::acceptor acceptor(context);
  boost::system::error_code error;
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error) return fail_errno(fmt::format("Failed to listen on '{}'", path), error.value());
  if (::chmod(path.c_str(), 0666) != 0)
    return fail_errno(fmt::format("Failed to open '{}' to all users", path), errno);
  return acceptor;
}

/// Tries to listen. A daemon that was killed while it started a child has left its sockets to it, up to the
/// moment in which the child becomes another program: so it is only after a while that somebody else serves.
template <typename Listen>
auto once_free(Listen listen) {
  const auto until = std::chrono::steady_clock::now() + kSocketsOfTheDead;
  auto acceptor = listen();
  while (!acceptor && acceptor.error().kind == ErrorKind::kConflict &&
         std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(kPollPause);
    acceptor = listen();
  }
  return acceptor;
}

/// Where programs of this machine find a server at the address.
ListenAddress reachable(ListenAddress address) {
  if (address.host == "0.0.0.0") address.host = "127.0.0.1";
  if (address.host == "::") address.host = "::1";
  return address;
}

std::optional<ucred> peer_of(const stream_protocol::socket& socket) {
  ucred credentials{};
  socklen_t size = sizeof credentials;
  const int fd = const_cast<stream_protocol::socket&>(socket).native_handle();
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) return std::nullopt;
  return credentials;
}

}  // namespace

struct Server::Parts : std::enable_shared_from_this<Server::Parts> {
  Parts(asio::io_context& io, ServerOptions chosen)
      : context(io), options(std::move(chosen)), unix_acceptor(io), tcp_acceptor(io), workers(io) {}

  /// Whether one more connection of this peer is welcome; counts it if so.
  bool enter(const Peer& peer) {
    const auto& limits = options.limits;
    const bool root = peer == Peer(uid_t{0});
    if (total + (root ? 0 : limits.connections_for_root) >= limits.connections) return false;
    const auto held = connections.find(peer);
    if (!root && held != connections.end() && held->second >= limits.connections_per_peer) return false;
    ++total;
    ++connections[peer];
    return true;
  }
  void leave(const Peer& peer) {
    --total;
    if (--connections[peer] == 0) connections.erase(peer);
  }

  asio::awaitable<void> accept_unix();
  asio::awaitable<void> accept_tcp();
  asio::awaitable<void> pause();
  /// `credentials`: of the other end of a unix socket.
  asio::awaitable<void> serve(Session::Socket socket, Peer peer, std::optional<ucred> credentials);

  asio::io_context& context;
  ServerOptions options;
  stream_protocol::acceptor unix_acceptor;
  tcp::acceptor tcp_acceptor;
  std::optional<marathon_v2::Parts> marathon;
  Workers workers;
  Typing typing;
  std::shared_ptr<Shared> shared;
  std::unique_ptr<mesos::Master> mesos;
  Tally tally;
  std::set<Session*> sessions;
  std::map<Peer, std::size_t> connections;
  std::size_t total = 0;
  ino_t socket_inode = 0;
};

asio::awaitable<void> Server::Parts::accept_unix() {
  const auto self = shared_from_this();
  while (unix_acceptor.is_open()) {
    auto [error, socket] = co_await unix_acceptor.async_accept(kAsTuple);
    if (!error) {
      const auto credentials = peer_of(socket);
      if (credentials)
        asio::co_spawn(context, serve(std::move(socket), credentials->uid, credentials), asio::detached);
    } else if (error != asio::error::operation_aborted) {
      co_await pause();
    }
  }
}

asio::awaitable<void> Server::Parts::accept_tcp() {
  const auto self = shared_from_this();
  while (tcp_acceptor.is_open()) {
    auto [error, socket] = co_await tcp_acceptor.async_accept(kAsTuple);
    if (!error) {
      boost::system::error_code gone;
      const auto peer = socket.remote_endpoint(gone);
      socket.set_option(tcp::no_delay(true), gone);
      socket.set_option(asio::socket_base::keep_alive(true), gone);
      if (!gone)
        asio::co_spawn(context, serve(std::move(socket), peer.address(), std::nullopt), asio::detached);
    } else if (error != asio::error::operation_aborted) {
      co_await pause();
    }
  }
}

/// Out of descriptors, most likely: trying again at once would only burn the CPU.
asio::awaitable<void> Server::Parts::pause() {
  asio::steady_timer timer(context, kAcceptPause);
  co_await timer.async_wait(kAsTuple);
}

asio::awaitable<void> Server::Parts::serve(Session::Socket socket, Peer peer,
                                           std::optional<ucred> credentials) {
  const auto self = shared_from_this();
  const bool welcome = enter(peer);
  if (!welcome) ++tally.refused_connections;
  try {
    std::optional<engine::Caller> caller;
    Error refusal{ErrorKind::kUnavailable, "Too many connections are open",
                  "close some, or try again in a moment", ""};
    if (credentials && welcome) {
      auto user = co_await workers.users.of_peer(credentials->uid, credentials->gid);
      if (user)
        caller = engine::Caller{std::move(*user)};
      else
        refusal = std::move(user).error();
    }
    const bool known = caller || !credentials;
    const auto* const address = std::get_if<asio::ip::address>(&peer);
    Session session(std::move(socket), shared, std::move(caller), address ? address->to_string() : "");
    if (welcome && known) {
      sessions.insert(&session);
      const std::unique_ptr<Session, std::function<void(Session*)>> registered(
          &session, [self](Session* ended) { self->sessions.erase(ended); });
      co_await session.run();
    } else {
      co_await session.refuse(std::move(refusal));
    }
  } catch (const std::exception&) {
    // The client went away, or took too long: there is nobody left to tell.
  }
  if (welcome) leave(peer);
}

Result<std::unique_ptr<Server>> Server::start(asio::io_context& context, engine::Api& daemon,
                                              ServerOptions options) {
  auto parts = std::make_shared<Parts>(context, std::move(options));
  const auto& chosen = parts->options;
  auto shared = std::make_shared<Shared>();
  parts->marathon.emplace(daemon).strict = chosen.marathon_strict;
  shared->services = {&daemon, &daemon, &parts->workers, chosen.version, "", &*parts->marathon};
  shared->services.images = chosen.images;
  shared->services.measure_gpus = chosen.measure_gpus;
  shared->services.add_facts = chosen.add_facts;
  shared->services.tally = &parts->tally;
  shared->services.default_network = chosen.default_network;
  shared->routes = all_routes();
  shared->credentials = chosen.credentials;
  shared->anonymous = chosen.anonymous;
  shared->executor_tokens = chosen.executor_tokens;
  shared->limits = chosen.limits;
  shared->answers = std::make_unique<AnswerShares>(chosen.answer_bytes);
  shared->services.answers = shared->answers.get();
  shared->services.typing = &parts->typing;
  if (parts->options.logins) {
    shared->services.logins = &*parts->options.logins;
    parts->options.logins->set_credentials(chosen.credentials);
  }
  shared->log = chosen.log;
  shared->audit = chosen.audit;
  boost::system::error_code error;
  shared->machine = asio::ip::host_name(error);
  shared->names = chosen.host_names;
  shared->names.push_back(shared->machine);
  if (chosen.listen) {
    if (chosen.credentials.empty())
      return fail(ErrorKind::kInvalid, "Failed to listen on TCP: nobody has a secret to come in with");
    DROVER_TRY(parts->tcp_acceptor,
               once_free([&] { return drover::http::listen_tcp(context, *chosen.listen); }));
    const bool loopback = parts->tcp_acceptor.local_endpoint().address().is_loopback();
    if (!loopback && !chosen.insecure_listen && !chosen.anonymous)
      return fail(
          ErrorKind::kInvalid,
          fmt::format("'{}' is not a loopback address, and secrets would go over the network without TLS",
                      to_string(*chosen.listen)),
          "put a TLS proxy in front of 127.0.0.1, or add --insecure-listen where the network is yours",
          "--listen");
    if (chosen.anonymous && !loopback)
      return fail(
          ErrorKind::kInvalid,
          fmt::format("Those who show no secret are let in on a loopback address only, and '{}' is none",
                      to_string(*chosen.listen)),
          "listen on 127.0.0.1, or leave --anonymous out", "--anonymous");
    shared->listen = ListenAddress{chosen.listen->host, parts->tcp_acceptor.local_endpoint().port()};
  }
  shared->services.address = shared->machine;
  if (shared->listen)
    shared->services.address = to_string(ListenAddress{shared->machine, shared->listen->port});
  DROVER_TRY(parts->unix_acceptor, once_free([&] { return listen_unix(context, chosen.socket_path); }));
  struct stat info{};
  if (::stat(chosen.socket_path.c_str(), &info) == 0) parts->socket_inode = info.st_ino;
  mesos::MasterOptions mesos;
  mesos.filter_gpu_resources = chosen.filter_gpu_resources;
  mesos.hostname = shared->machine;
  if (shared->listen) mesos.port = shared->listen->port;
  if (shared->listen && chosen.executor_tokens)
    mesos.executor_endpoint = chosen.pods_endpoint.value_or(to_string(reachable(*shared->listen)));
  mesos.executors_in_pods = chosen.pods_endpoint.has_value();
  shared->pods_endpoint = chosen.pods_endpoint.value_or("");
  if (asio::ip::make_address_v4(shared->listen ? shared->listen->host : "", error); !error)
    mesos.ip = shared->listen->host == "0.0.0.0" ? mesos.ip : shared->listen->host;
  parts->mesos = std::make_unique<mesos::Master>(context, daemon, std::move(mesos));
  shared->services.mesos = parts->mesos.get();
  parts->marathon->events.set_ip(parts->mesos->options().ip);
  parts->shared = std::move(shared);
  asio::co_spawn(context, parts->accept_unix(), asio::detached);
  if (chosen.listen) asio::co_spawn(context, parts->accept_tcp(), asio::detached);
  return std::unique_ptr<Server>(new Server(std::move(parts)));
}

Server::Server(std::shared_ptr<Parts> parts) : parts_(std::move(parts)) {}

Server::~Server() {
  stop();
  parts_->workers.stop();  // connections hold the parts until the context is gone
}

void Server::stop() {
  boost::system::error_code ignored;
  if (!parts_->unix_acceptor.is_open()) return;
  parts_->unix_acceptor.close(ignored);
  parts_->tcp_acceptor.close(ignored);
  const auto& path = parts_->options.socket_path;
  struct stat info{};
  const bool ours = ::stat(path.c_str(), &info) == 0 && info.st_ino == parts_->socket_inode;
  if (ours) ::unlink(path.c_str());
  parts_->mesos->stop();
  parts_->marathon->events.stop();
  for (auto* session : parts_->sessions) session->stop();
}

void Server::ask(const engine::Caller& caller, const std::string& method, const std::string& target,
                 std::string body, std::function<void(Response)> done) {
  Request request;
  request.method = method;
  request.content_type = "application/json";
  request.body = std::move(body);
  request.caller = caller;
  const auto parsed = parse_target(target, request);
  const auto most = parts_->shared->limits.body_bytes;
  const bool large = request.body.size() > std::max(most, body_limit(parts_->shared->routes, request));
  auto answer = [parts = parts_, request = std::move(request), parsed, large, target,
                 done = std::move(done)]() mutable -> asio::awaitable<void> {
    const auto user = request.caller->user;
    const auto verb = request.method;
    Response response;
    if (!parsed)
      response = error_response(parsed.error());
    else if (large)
      response =
          error_response({ErrorKind::kInvalid, "The definition is larger than one may be", "", ""}, 413);
    else
      response = co_await route(parts->shared->routes, parts->shared->services, std::move(request));
    ++parts->tally.answers[response.status];
    if (parts->options.audit && verb != "GET")
      parts->options.audit(fmt::format("audit user={} uid={} method={} path={} status={}", user.name,
                                       user.uid, verb, target.substr(0, target.find('?')), response.status));
    done(std::move(response));
  };
  asio::co_spawn(parts_->context, std::move(answer), asio::detached);
}

void Server::set_credentials(std::vector<Credential> credentials) {
  if (auto* const logins = parts_->shared->services.logins) logins->set_credentials(credentials);
  parts_->shared->credentials = std::move(credentials);
}

std::optional<ListenAddress> Server::tcp_address() const {
  return parts_->shared->listen;
}

}  // namespace drover::api
