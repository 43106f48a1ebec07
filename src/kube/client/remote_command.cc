#include "kube/client/remote_command.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/ssl.hpp>
#include <boost/beast/websocket.hpp>
#include <boost/beast/websocket/ssl.hpp>
#include <boost/url/parse.hpp>
#include <boost/url/url_view.hpp>
#include <charconv>
#include <deque>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "base/decode.h"
#include "base/fd.h"
#include "base/text.h"
#include "kube/client/api.h"
#include "kube/client/refusal.h"
#include "kube/client/url_text.h"

namespace drover::kube {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace websocket = beast::websocket;
using boost::system::error_code;
using nlohmann::json;

constexpr std::chrono::milliseconds kLook{100};  ///< whether it is to stop
constexpr std::size_t kPiece = 16 << 10;
constexpr std::size_t kMostMessage = 4 << 20;
constexpr int kNotExecutable = 126, kNotThere = 127;
constexpr const char* kProtocols = "v5.channel.k8s.io, v4.channel.k8s.io";
// Channels: the first byte of each message.
constexpr char kInput = 0, kOutput = 1, kErrors = 2, kStatus = 3, kResize = 4,
               kClose = static_cast<char>(255);

ObjectPath path_of(const RemoteCommandRequest& request) {
  return {kPods, request.name_space, request.pod, request.command.empty() ? "attach" : "exec"};
}

std::string target_of(const RemoteCommandRequest& request) {
  auto target = url_path(path_of(request));
  target += fmt::format("?container={}&stdin=true&stdout=true&stderr={}&tty={}", url_text(request.container),
                        !request.tty, request.tty);
  for (const auto& word : request.command) target += "&command=" + url_text(word);
  return target;
}

Error broken(const std::string& why) {
  return {ErrorKind::kUnavailable, fmt::format("the connection to the container broke: {}", why), "", ""};
}

}  // namespace

/// What runs on a thread of its own, until the connection has ended.
class RemoteCommand::Session : public std::enable_shared_from_this<RemoteCommand::Session> {
 public:
  using Stream = websocket::stream<beast::ssl_stream<beast::tcp_stream>>;

  Session(const ServerConfig& config, const RemoteCommandRequest& request)
      : config_(config), request_(request) {}

  /// Blocks.
  Status open(const std::stop_token& stop) {
    DROVER_CHECK_OK(make_descriptors());
    const auto url = boost::urls::parse_uri(config_.url);
    if (!url || url->scheme_id() != boost::urls::scheme::https)
      return fail(ErrorKind::kUnsupported, "Commands in containers need an API server over https");
    host_ = url->host_address();
    port_ = url->has_port() ? std::string(url->port()) : "443";
    DROVER_CHECK_OK(trust());
    std::optional<Status> opened;
    asio::co_spawn(context_, [&]() -> asio::awaitable<void> { opened = co_await connect(); }, asio::detached);
    for (const auto until = std::chrono::steady_clock::now() + request_.opening;
         !opened && !stop.stop_requested() && std::chrono::steady_clock::now() < until;)
      context_.run_for(kLook);
    if (!opened)
      return fail(ErrorKind::kTimeout,
                  fmt::format("The API server did not start the command within {} s",
                              std::chrono::ceil<std::chrono::seconds>(request_.opening).count()));
    return *opened;
  }

  void run() {
    context_.restart();
    asio::co_spawn(context_, read(), asio::detached);
    asio::co_spawn(context_, forward(), asio::detached);
    thread_ = std::thread([self = shared_from_this()] {
      self->context_.run();
      self->finish(Failure(broken("it was closed")));
    });
  }

  ~Session() {
    if (!thread_.joinable()) return;
    if (thread_.get_id() == std::this_thread::get_id())
      thread_.detach();
    else
      thread_.join();
  }

  void close() {
    asio::post(context_, [self = shared_from_this()] { self->shut(); });
  }
  void join() {
    if (thread_.joinable()) thread_.join();
  }
  void resize(int rows, int columns) {
    asio::post(context_, [self = shared_from_this(), rows, columns] {
      self->send(kResize, json{{"Width", columns}, {"Height", rows}}.dump());
    });
  }

  UniqueFd input, output, errors, ended;  ///< the caller's ends
  std::optional<Result<int>> outcome;     ///< before `ended` is readable

 private:
  Status make_descriptors() {
    const auto pair = [](UniqueFd& callers) -> Result<UniqueFd> {
      std::array<int, 2> ends{};
      if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()) != 0)
        return fail(ErrorKind::kExhausted, "No more descriptors can be opened");
      callers = UniqueFd(ends[0]);
      return UniqueFd(ends[1]);
    };
    DROVER_TRY(auto own_output, pair(output));
    output_.assign(own_output.release());
    if (request_.tty) {
      input_.assign(::fcntl(output_.native_handle(), F_DUPFD_CLOEXEC, 0));
    } else {
      DROVER_TRY(auto own_input, pair(input));
      DROVER_TRY(auto own_errors, pair(errors));
      input_.assign(own_input.release());
      errors_.assign(own_errors.release());
    }
    ended = UniqueFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    return {};
  }

  Status trust() {
    error_code error;
    tls_.set_verify_mode(asio::ssl::verify_peer, error);
    DROVER_TRY(const auto authorities, read_secret(config_.authorities));
    if (authorities.empty())
      tls_.set_default_verify_paths(error);
    else
      tls_.add_certificate_authority(asio::buffer(authorities), error);
    DROVER_TRY(const auto certificate, read_secret(config_.certificate));
    DROVER_TRY(const auto key, read_secret(config_.key));
    if (!error && !certificate.empty()) tls_.use_certificate_chain(asio::buffer(certificate), error);
    if (!error && !key.empty()) tls_.use_private_key(asio::buffer(key), asio::ssl::context::pem, error);
    if (!error) return {};
    return fail(ErrorKind::kInvalid,
                fmt::format("The certificates of {} cannot be used: {}", config_.source, error.message()));
  }

  asio::awaitable<Status> connect() {
    error_code error;
    const auto done = [&] { return asio::redirect_error(asio::use_awaitable, error); };
    const auto failed = [&](const char* what) {
      return fail(ErrorKind::kUnavailable,
                  fmt::format("The API server at '{}' does not {}: {}", config_.url, what, error.message()));
    };
    asio::ip::tcp::resolver resolver(context_);
    const auto addresses = co_await resolver.async_resolve(host_, port_, done());
    if (error) co_return failed("answer");
    stream_.emplace(context_, tls_);
    auto& tls = stream_->next_layer();
    tls.set_verify_callback(asio::ssl::host_name_verification(host_), error);
    SSL_set_tlsext_host_name(tls.native_handle(), host_.c_str());
    co_await beast::get_lowest_layer(*stream_).async_connect(addresses, done());
    if (error) co_return failed("answer");
    co_await tls.async_handshake(asio::ssl::stream_base::client, done());
    if (error) co_return failed("agree on TLS");
    const auto token = read_secret(config_.token);
    if (!token) co_return Failure(token.error());
    stream_->set_option(websocket::stream_base::decorator([&](websocket::request_type& head) {
      head.set(beast::http::field::sec_websocket_protocol, kProtocols);
      if (!token->empty())
        head.set(beast::http::field::authorization, fmt::format("Bearer {}", trimmed(*token)));
    }));
    stream_->read_message_max(kMostMessage);
    stream_->binary(true);
    stream_->auto_fragment(false);  // a kubelet takes each frame for a message
    websocket::response_type answer;
    co_await stream_->async_handshake(answer, host_, target_of(request_), done());
    if (error == websocket::error::upgrade_declined) {
      const auto refusal = read_refusal(static_cast<int>(answer.result_int()), answer.body());
      co_return Failure(refusal_error(
          refusal,
          fmt::format("Failed to {} pod '{}'", request_.command.empty() ? "attach to" : "run a command in",
                      request_.pod),
          {.verb = "create", .path = path_of(request_)}));
    }
    if (error) co_return failed("run the command");
    half_closes_ = answer[beast::http::field::sec_websocket_protocol].starts_with("v5");
    if (request_.tty) send(kResize, json{{"Width", request_.columns}, {"Height", request_.rows}}.dump());
    co_return Status();
  }

  /// What comes, until the connection ends.
  asio::awaitable<void> read() {
    const auto self = shared_from_this();
    beast::flat_buffer buffer;
    error_code error;
    const auto done = [&] { return asio::redirect_error(asio::use_awaitable, error); };
    while (true) {
      co_await stream_->async_read(buffer, done());
      if (error) break;
      const std::string_view message(static_cast<const char*>(buffer.data().data()), buffer.size());
      if (!message.empty()) {
        const auto rest = message.substr(1);
        if (message.front() == kStatus) outcome_ = read_exit_status(std::string(rest));
        auto* target = message.front() == kOutput   ? &output_
                       : message.front() == kErrors ? &errors_
                                                    : nullptr;
        // A reader who has gone is no trouble: the rest is read all the same.
        if (target != nullptr && target->is_open())
          co_await asio::async_write(*target, asio::buffer(rest.data(), rest.size()), done());
      }
      buffer.clear();
    }
    finish(outcome_ ? *outcome_ : Result<int>(Failure(broken(error.message()))));
    shut();
  }

  /// What the caller writes.
  asio::awaitable<void> forward() {
    const auto self = shared_from_this();
    std::array<char, kPiece> piece;
    error_code error;
    const auto done = [&] { return asio::redirect_error(asio::use_awaitable, error); };
    while (true) {
      const auto count = co_await input_.async_read_some(asio::buffer(piece), done());
      if (error) break;
      send(kInput, std::string(piece.data(), count));
      while (!waiting_.empty() && input_.is_open()) {
        error_code woken;
        co_await drained_.async_wait(asio::redirect_error(asio::use_awaitable, woken));
      }
    }
    if (error == asio::error::eof && half_closes_) send(kClose, std::string(1, kInput));
  }

  void send(char channel, std::string text) {
    waiting_.push_back(channel + std::move(text));
    if (waiting_.size() == 1) send_next();
  }
  void send_next() {
    stream_->async_write(asio::buffer(waiting_.front()),
                         [this, self = weak_from_this().lock()](const error_code& error, std::size_t) {
                           waiting_.pop_front();
                           if (error) waiting_.clear();
                           if (waiting_.empty())
                             drained_.cancel();
                           else
                             send_next();
                         });
  }

  void finish(Result<int> how) {
    if (outcome) return;
    outcome = std::move(how);
    error_code ignored;
    output_.close(ignored);
    errors_.close(ignored);
    const std::uint64_t one = 1;
    (void)!::write(ended.get(), &one, sizeof(one));
  }

  void shut() {
    error_code ignored;
    input_.close(ignored);
    drained_.cancel();
    beast::get_lowest_layer(*stream_).socket().close(ignored);
  }

  const ServerConfig config_;
  const RemoteCommandRequest request_;
  std::string host_, port_;
  asio::io_context context_{1};
  asio::ssl::context tls_{asio::ssl::context::tls_client};
  std::optional<Stream> stream_;
  asio::posix::stream_descriptor input_{context_}, output_{context_}, errors_{context_};
  asio::steady_timer drained_{context_,
                              asio::steady_timer::time_point::max()};  ///< cancelled when all is sent
  std::deque<std::string> waiting_;
  std::optional<Result<int>> outcome_;
  bool half_closes_ = false;
  std::thread thread_;
};

Result<int> read_exit_status(const std::string& text) {
  const auto status = parse_json(text, "The end of the command");
  if (!status) return Failure(broken(status.error().message));
  if (text_at(*status, "/status") == "Success") return 0;
  if (text_at(*status, "/reason") == "NonZeroExitCode")
    for (const auto& cause : status->value("/details/causes"_json_pointer, json::array()))
      if (text_at(cause, "/reason") == "ExitCode") {
        const auto number = text_at(cause, "/message");
        int code = 0;
        if (std::from_chars(number.data(), number.data() + number.size(), code).ec == std::errc())
          return code;
      }
  const auto message = text_at(*status, "/message");
  // As shells say it; runtimes have only words for it.
  if (message.find("executable file not found") != std::string::npos ||
      message.find("no such file or directory") != std::string::npos)
    return kNotThere;
  if (message.find("permission denied") != std::string::npos) return kNotExecutable;
  return fail(ErrorKind::kUnavailable, message.empty() ? "The command could not be run" : message);
}

RemoteCommand::RemoteCommand(std::shared_ptr<Session> session) : session_(std::move(session)) {}

Result<std::unique_ptr<RemoteCommand>> RemoteCommand::start(const ServerConfig& config,
                                                            const RemoteCommandRequest& request,
                                                            const std::stop_token& stop) {
  auto session = std::make_shared<Session>(config, request);
  DROVER_CHECK_OK(session->open(stop));
  session->run();
  return std::unique_ptr<RemoteCommand>(new RemoteCommand(std::move(session)));
}

RemoteCommand::~RemoteCommand() {
  session_->close();
  session_->join();
}

int RemoteCommand::input() const {
  return session_->input.valid() ? session_->input.get() : session_->output.get();
}
int RemoteCommand::output() const {
  return session_->output.get();
}
int RemoteCommand::errors() const {
  return session_->errors.get();
}
void RemoteCommand::close_input() {
  session_->input.reset();
}
void RemoteCommand::resize(int rows, int columns) {
  session_->resize(rows, columns);
}
int RemoteCommand::ended() const {
  return session_->ended.get();
}
Result<int> RemoteCommand::wait() {
  session_->join();
  return *session_->outcome;
}
void RemoteCommand::close() {
  session_->close();
}

}  // namespace drover::kube
