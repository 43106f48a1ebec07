#pragma once

// One connection: reads requests, decides who asks, and writes answers. Lives until the client or the server
// closes it. Used on the control strand only.

#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/basic_stream.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/fields.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <chrono>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "api/answer_shares.h"
#include "api/executor_tokens.h"
#include "api/router.h"
#include "api/server.h"
#include "api/wrong_secrets.h"

namespace drover::api {

namespace beast = boost::beast;
namespace http = boost::beast::http;

/// What all sessions share; outlives them.
struct Shared {
  Services services;
  std::span<const Route> routes;
  std::optional<ListenAddress> listen;  ///< with its real port
  std::string machine;                  ///< its host name
  std::vector<std::string> names;       ///< all that it goes by
  std::string pods_endpoint;            ///< what executors in pods call it, with a port
  std::vector<Credential> credentials;
  std::optional<User> anonymous;
  std::optional<ExecutorTokens> executor_tokens;
  Limits limits;
  std::unique_ptr<AnswerShares> answers;
  std::function<void(const std::string&)> log;
  std::function<void(const std::string&)> audit;
  std::unique_ptr<WrongSecrets> wrong_secrets = std::make_unique<WrongSecrets>();
};

/// Who asks: a user, an executor of a framework, or a stranger, of whom one reads metrics.
struct Asker {
  std::optional<engine::Caller> caller;
  std::string executor;         ///< as in Request
  bool logged_in = false;       ///< as in Request
  bool metrics_reader = false;  ///< as in Request

  bool is_stranger() const { return !caller && executor.empty(); }
};

class WebSocket;

class Session : public Duplex {
 public:
  using Socket = asio::generic::stream_protocol::socket;

  /// `peer`: who is at the other end of a unix socket; none for TCP, where `address` says from where.
  Session(Socket socket, std::shared_ptr<const Shared> shared, std::optional<engine::Caller> peer,
          std::string address = "");

  /// Serves until the connection ends.
  asio::awaitable<void> run();
  /// Answers one error and closes.
  asio::awaitable<void> refuse(Error error);
  /// Closes after the request in progress; at once when there is none, or when its answer is live.
  void stop();

  asio::awaitable<void> write(std::string piece) override;
  asio::awaitable<std::string> read() override;

 private:
  using Message = http::request<http::string_body>;
  using Parser = http::request_parser<http::string_body>;

  asio::awaitable<bool> serve_one();
  /// Waits for the next request, at most as long as an idle connection is kept.
  asio::awaitable<bool> wait_for_request();
  asio::awaitable<boost::system::error_code> read_header(Parser& parser);
  /// Reads the body that belongs to `parser`'s header; the answer when it is refused.
  asio::awaitable<std::optional<Response>> read_body(Parser& parser);
  asio::awaitable<Response> answer(const Message& message, const Asker& asker);
  /// Counts it, and tells who changed what.
  void note(const Message& message, const Asker& asker, const Response& response);
  /// One request that comes by a WebSocket, and its answer.
  asio::awaitable<void> serve_socket(const Message& handshake, const Asker& asker);
  asio::awaitable<void> answer_socket(WebSocket& socket, const Message& message, const Asker& asker);
  /// Who asks, or why he may not.
  asio::awaitable<Result<Asker>> admit(const http::request_header<>& header);
  bool is_own_name(std::string_view name) const;
  bool is_pods_endpoint(std::string_view name) const;
  /// By a secret.
  asio::awaitable<Result<Asker>> admit_known(std::string authorization);
  asio::awaitable<Result<Asker>> admit_named(std::string name, bool logged_in);
  /// The executor whose token it is, which may have ended; none when it is no such token.
  std::optional<Result<Asker>> find_executor(std::string_view token) const;
  /// Returns when the caller may have another answer, or why he may not.
  asio::awaitable<Status> await_turn(const engine::Caller& caller);
  asio::awaitable<Error> refuse_secret();
  /// At most until the session is stopped.
  asio::awaitable<void> pause_until(std::chrono::steady_clock::time_point then);
  asio::awaitable<void> send(Response response, const Message& request);
  static asio::awaitable<void> stream_of(Response& response, BodyWriter& writer, std::exception_ptr& failure);
  asio::awaitable<void> send_stream(Response& response, http::response<http::empty_body> head,
                                    bool head_only);
  asio::awaitable<void> leave_http(Response& response, http::response<http::empty_body> head);
  asio::awaitable<void> wait_for_hangup();
  asio::awaitable<void> discard_rest();

  beast::basic_stream<asio::generic::stream_protocol> stream_;
  asio::steady_timer pause_;
  beast::flat_buffer buffer_;
  std::shared_ptr<const Shared> shared_;
  std::optional<engine::Caller> peer_;
  std::optional<engine::Caller> page_of_;  ///< in whose browser the page is that asks
  std::string address_;
  bool chunked_ = false;
  bool upgraded_ = false;
  bool interruptible_ = true;
  bool stopping_ = false;
  bool unread_ = false;  ///< the client may still be sending what was refused
};

}  // namespace drover::api
