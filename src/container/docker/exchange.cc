#include "container/docker/exchange.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <cerrno>
#include <cstring>

#include "base/fd.h"

namespace drover::container::docker {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;

constexpr std::size_t kPiece = 64 << 10;
constexpr std::uint32_t kLongestHead = 64 << 10;
constexpr timeval kSendTimeout{10, 0};

Failure nobody_answers(const std::string& socket, int error) {
  return fail(ErrorKind::kUnavailable,
              fmt::format("No Docker Engine answers at '{}': {}", socket, std::strerror(error)),
              "start it, or name its socket with 'drover serve --docker-socket'");
}

Result<UniqueFd> connect_to(const std::string& socket) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket.size() >= sizeof address.sun_path) return nobody_answers(socket, ENAMETOOLONG);
  socket.copy(static_cast<char*>(address.sun_path), socket.size());
  UniqueFd connection(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!connection.valid()) return nobody_answers(socket, errno);
  ::setsockopt(connection.get(), SOL_SOCKET, SO_SNDTIMEO, &kSendTimeout, sizeof kSendTimeout);
  if (::connect(connection.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return nobody_answers(socket, errno);
  return connection;
}

std::string head_of(const Request& request) {
  auto head =
      fmt::format("{} {} HTTP/1.1\r\nHost: docker\r\nUser-Agent: drover\r\n", request.method, request.target);
  for (const auto& [name, value] : request.headers) head += fmt::format("{}: {}\r\n", name, value);
  if (!request.body.empty()) head += "Content-Type: application/json\r\n";
  if (!request.body.empty() || request.method == "POST")
    head += fmt::format("Content-Length: {}\r\n", request.body.size());
  return head +
         (request.upgrade ? "Connection: Upgrade\r\nUpgrade: tcp\r\n\r\n" : "Connection: close\r\n\r\n");
}

}  // namespace

/// The connection and what of the answer is understood.
class Exchange::Parser {
 public:
  Parser(UniqueFd connection, std::string socket)
      : connection_(std::move(connection)), socket_(std::move(socket)) {
    parser_.header_limit(kLongestHead);
    parser_.body_limit(std::uint64_t{1} << 50);  // who reads it piece by piece needs none
  }

  Status receive() {
    std::array<char, kPiece> buffer;
    const auto count = ::recv(connection_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return {};
    if (count < 0) return broken(std::strerror(errno));
    if (count == 0) return end();
    const std::string_view bytes(buffer.data(), static_cast<std::size_t>(count));
    if (raw_) {
      body_ += bytes;
      return {};
    }
    unread_ += bytes;
    return understand();
  }

  Failure broken(std::string_view why) const {
    return fail(ErrorKind::kUnavailable,
                fmt::format("The Docker Engine at '{}' broke off its answer: {}", socket_, why),
                "look at its log");
  }

  UniqueFd connection_;
  std::string socket_;
  http::response_parser<http::string_body> parser_;
  std::string unread_;
  std::string body_;  ///< that nobody has taken yet
  bool raw_ = false;
  bool ended_ = false;

 private:
  Status understand() {
    boost::system::error_code error;
    try {
      while (!unread_.empty() && !parser_.is_done() && !error) {
        const auto used = parser_.put(asio::buffer(unread_), error);
        unread_.erase(0, used);
      }
    } catch (const std::exception& problem) {  // a length that nobody has the memory for
      return fail(
          ErrorKind::kCorrupt,
          fmt::format("The Docker Engine at '{}' answered what cannot be read: {}", socket_, problem.what()));
    }
    if (error && error != http::error::need_more)
      return fail(ErrorKind::kCorrupt,
                  fmt::format("What answers at '{}' does not speak HTTP: {}", socket_, error.message()),
                  "name the socket of a Docker Engine");
    keep_body();
    if (!parser_.is_done()) return {};
    raw_ = parser_.get().result_int() == 101;
    if (raw_) body_ += std::exchange(unread_, {});
    ended_ = !raw_;
    return {};
  }

  void keep_body() {
    auto& body = parser_.get().body();
    body_ += body;
    body.clear();
  }

  Status end() {
    if (ended_) return {};
    if (!raw_) {
      boost::system::error_code error;
      parser_.put_eof(error);
      if (error || !parser_.is_done()) return broken("the connection was closed");
      keep_body();
    }
    ended_ = true;
    return {};
  }
};

Exchange::Exchange(std::unique_ptr<Parser> parser) : parser_(std::move(parser)) {}
Exchange::Exchange(Exchange&& other) noexcept = default;
Exchange& Exchange::operator=(Exchange&& other) noexcept = default;
Exchange::~Exchange() = default;

Result<Exchange> Exchange::begin(const std::string& socket, const Request& request) {
  DROVER_TRY(auto connection, connect_to(socket));
  const auto text = head_of(request) + request.body;
  for (std::string_view left = text; !left.empty();) {
    const auto count = ::send(connection.get(), left.data(), left.size(), MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return nobody_answers(socket, errno);
    left.remove_prefix(static_cast<std::size_t>(count));
  }
  return Exchange(std::make_unique<Parser>(std::move(connection), socket));
}

int Exchange::fd() const {
  return parser_->connection_.get();
}

Status Exchange::receive() {
  return parser_->receive();
}

int Exchange::status() const {
  return parser_->parser_.is_header_done() ? static_cast<int>(parser_->parser_.get().result_int()) : 0;
}

std::string Exchange::header(std::string_view name) const {
  const auto& fields = parser_->parser_.get().base();
  const auto found = fields.find(boost::beast::string_view(name.data(), name.size()));
  return found == fields.end() ? "" : std::string(found->value());
}

std::string Exchange::take() {
  return std::exchange(parser_->body_, {});
}

bool Exchange::ended() const {
  return parser_->ended_;
}

Result<std::size_t> Exchange::send(std::string_view bytes) {
  const auto count =
      ::send(parser_->connection_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (count >= 0) return static_cast<std::size_t>(count);
  if (errno == EAGAIN || errno == EINTR) return 0;
  return parser_->broken(std::strerror(errno));
}

void Exchange::finish_sending() {
  ::shutdown(parser_->connection_.get(), SHUT_WR);
}

namespace {

using Clock = std::chrono::steady_clock;

Status receive_until(Exchange& exchange, Clock::time_point deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
  if (left <= 0)
    return fail(ErrorKind::kTimeout, "The Docker Engine takes too long to answer", "look at its log");
  pollfd waited{exchange.fd(), POLLIN, 0};
  if (::poll(&waited, 1, static_cast<int>(std::min<std::int64_t>(left, 60'000))) <= 0) return {};
  return exchange.receive();
}

}  // namespace

Status await_head(Exchange& exchange, std::chrono::milliseconds timeout) {
  const auto deadline = Clock::now() + timeout;
  while (exchange.status() == 0) DROVER_CHECK_OK(receive_until(exchange, deadline));
  return {};
}

Result<Answer> call(const std::string& socket, const Request& request, std::chrono::milliseconds timeout) {
  DROVER_TRY(auto exchange, Exchange::begin(socket, request));
  const auto deadline = Clock::now() + timeout;
  Answer answer;
  while (!exchange.ended()) {
    DROVER_CHECK_OK(receive_until(exchange, deadline));
    answer.body += exchange.take();
    if (answer.body.size() > kLongestAnswer)
      return fail(ErrorKind::kExhausted,
                  fmt::format("The Docker Engine at '{}' answers without end", socket));
  }
  answer.status = exchange.status();
  answer.api_version = exchange.header("Api-Version");
  return answer;
}

}  // namespace drover::container::docker
