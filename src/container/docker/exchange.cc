#include "container/docker/exchange.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/fd.h"
#include "http/client.h"

namespace drover::container::docker {
namespace {

constexpr std::size_t kPiece = 64 << 10;
constexpr std::chrono::seconds kConnectTime{10};
constexpr timeval kSendTimeout{10, 0};

Failure nobody_answers(const std::string& socket, const std::string& why) {
  return fail(ErrorKind::kUnavailable, fmt::format("No Docker Engine answers at '{}': {}", socket, why),
              "start it, or name its socket with 'drover serve --docker-socket'");
}

}  // namespace

struct Exchange::Parts {
  UniqueFd connection;
  std::string socket;
  http::AnswerReader answer;
};

Exchange::Exchange(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Exchange::Exchange(Exchange&& other) noexcept = default;
Exchange& Exchange::operator=(Exchange&& other) noexcept = default;
Exchange::~Exchange() = default;

Result<Exchange> Exchange::begin(const std::string& socket, Request request) {
  request.host = "docker";
  auto connection = http::connect_unix(socket, kConnectTime);
  if (!connection) return nobody_answers(socket, connection.error().message());
  ::setsockopt(connection->get(), SOL_SOCKET, SO_SNDTIMEO, &kSendTimeout, sizeof kSendTimeout);
  const auto text = to_text(request);
  for (std::string_view left = text; !left.empty();) {
    const auto count = ::send(connection->get(), left.data(), left.size(), MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return nobody_answers(socket, std::strerror(errno));
    left.remove_prefix(static_cast<std::size_t>(count));
  }
  return Exchange(std::unique_ptr<Parts>(new Parts{std::move(*connection), socket, {}}));
}

int Exchange::fd() const {
  return parts_->connection.get();
}

Status Exchange::receive() {
  std::array<char, kPiece> buffer;
  const auto count = ::recv(fd(), buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return {};
  if (count < 0) return Failure(broken(std::strerror(errno)));
  auto& answer = parts_->answer;
  if (count == 0) return answer.finish() ? Status(Failure(broken("the connection was closed"))) : Status();
  if (const auto error = answer.receive({buffer.data(), static_cast<std::size_t>(count)}))
    return fail(ErrorKind::kCorrupt,
                fmt::format("What answers at '{}' does not speak HTTP: {}", parts_->socket, error.message()),
                "name the socket of a Docker Engine");
  return {};
}

Error Exchange::broken(std::string_view why) const {
  return {ErrorKind::kUnavailable,
          fmt::format("The Docker Engine at '{}' broke off its answer: {}", parts_->socket, why),
          "look at its log", ""};
}

int Exchange::status() const {
  return parts_->answer.status();
}

std::string Exchange::header(std::string_view name) const {
  return parts_->answer.header(name);
}

std::string Exchange::take() {
  return parts_->answer.take();
}

bool Exchange::ended() const {
  return parts_->answer.ended();
}

Result<std::size_t> Exchange::send(std::string_view bytes) {
  const auto count = ::send(fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (count >= 0) return static_cast<std::size_t>(count);
  if (errno == EAGAIN || errno == EINTR) return 0;
  return Failure(broken(std::strerror(errno)));
}

void Exchange::finish_sending() {
  ::shutdown(fd(), SHUT_WR);
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
