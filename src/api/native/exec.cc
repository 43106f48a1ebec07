// A command in a task's container, over one connection: the request is an HTTP upgrade, and after it frames
// go both ways (docs/api.md). When the client goes, the command is ended.

#include <fmt/format.h>

#include <array>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/write.hpp>
#include <nlohmann/json.hpp>

#include "api/async.h"
#include "api/native/handlers.h"
#include "api/workers.h"
#include "base/decode.h"
#include "base/frames.h"
#include "base/json_text.h"
#include "workload/task.h"

namespace drover::api {
namespace {

using nlohmann::json;

constexpr const char* kProtocol = "drover-exec";
constexpr std::size_t kMostEnding = 64;

Result<engine::ExecRequest> decode_request(const json& body) {
  std::vector<Error> mistakes;
  Decoder decoder(body, mistakes);
  engine::ExecRequest request;
  request.command = decoder.string_list("command").value_or(std::vector<std::string>{});
  request.environment = decoder.string_map("env").value_or(request.environment);
  request.tty = decoder.boolean("tty").value_or(false);
  request.rows =
      static_cast<int>(decoder.integer("rows", 1, workload::kMaxTerminalSide).value_or(request.rows));
  request.columns =
      static_cast<int>(decoder.integer("columns", 1, workload::kMaxTerminalSide).value_or(request.columns));
  const auto has_nul = [](const std::string& text) { return text.find('\0') != std::string::npos; };
  if (mistakes.empty() && (request.command.empty() || request.command.front().empty() ||
                           std::any_of(request.command.begin(), request.command.end(), has_nul)))
    decoder.mistake("command", "there is no command to run", "write it after '--'");
  for (const auto& [name, value] : request.environment)
    if (name.empty() || name.find('=') != std::string::npos || has_nul(name) || has_nul(value))
      decoder.mistake("env", "it has a name or a value that no variable can have");
  decoder.finish();
  if (!mistakes.empty()) return Failure(join_mistakes(mistakes, "The command"));
  return request;
}

/// One command and its connection.
class Exchange {
 public:
  Exchange(std::shared_ptr<engine::ExecProcess> process, asio::any_io_executor executor, Duplex& client)
      : process_(std::move(process)),
        client_(client),
        input_(executor, ::dup(process_->input())),
        output_(executor, ::dup(process_->output())),
        ended_(executor, ::dup(process_->process())) {
    if (process_->errors() >= 0) errors_.emplace(executor, ::dup(process_->errors()));
  }

  asio::awaitable<void> run() {
    using namespace asio::experimental::awaitable_operators;
    co_await (send_output() || receive_input());
  }

 private:
  using Descriptor = asio::posix::stream_descriptor;

  /// Waiting can be broken off without a loss; reading and writing are done one after the other.
  static asio::awaitable<void> readable(Descriptor* descriptor) {
    if (descriptor != nullptr && descriptor->is_open()) {
      (void)co_await descriptor->async_wait(Descriptor::wait_read, kAsTuple);
      co_return;
    }
    asio::steady_timer never(co_await asio::this_coro::executor, asio::steady_timer::time_point::max());
    (void)co_await never.async_wait(kAsTuple);
  }

  asio::awaitable<void> send_output() {
    using namespace asio::experimental::awaitable_operators;
    auto* errors = errors_ ? &*errors_ : nullptr;
    while (true) {
      const auto first = co_await (readable(&ended_) || readable(&output_) || readable(errors));
      // What was written before the end is told before the end.
      const bool last = first.index() == 0;
      co_await send(output_, from_daemon::kOutput, last);
      if (errors != nullptr) co_await send(*errors, from_daemon::kErrors, last);
      if (last) break;
    }
    const auto status = process_->wait();
    const json end = status ? json{{"exit_status", *status}}
                            : json{{"error",
                                    {{"kind", error_kind_info(status.error().kind).name},
                                     {"message", status.error().message},
                                     {"hint", status.error().hint}}}};
    co_await client_.write(to_text(Frame{from_daemon::kEnd, to_text(end)}));
  }

  /// What is there now; `all`: until there is no more, or more than was written before the end, which a pipe
  /// would not hold.
  asio::awaitable<void> send(Descriptor& from, char channel, bool all) {
    std::vector<char> buffer(kPiece);
    for (std::size_t pieces = 0; from.is_open() && pieces < kMostAtEnd / kPiece; ++pieces) {
      const auto count = ::read(from.native_handle(), buffer.data(), buffer.size());
      if (count < 0 && (errno == EAGAIN || errno == EINTR)) co_return;
      if (count <= 0) {  // a terminal whose other side is closed says EIO
        from.close();
        co_return;
      }
      co_await client_.write(to_text(Frame{channel, {buffer.data(), static_cast<std::size_t>(count)}}));
      if (!all) co_return;
    }
  }

  asio::awaitable<void> receive_input() {
    FrameParser parser;
    while (!parser.is_broken()) {
      const auto piece = co_await client_.read();
      if (piece.empty()) co_return;
      parser.append(piece);
      while (const auto frame = parser.next()) {
        if (frame->channel == to_daemon::kInput) co_await pass_on(frame->payload);
        if (frame->channel == to_daemon::kResize) resize(frame->payload);
      }
    }
  }

  asio::awaitable<void> pass_on(const std::string& payload) {
    if (!input_.is_open()) co_return;
    if (payload.empty()) {
      if (process_->errors() < 0) co_return;  // a terminal has no end
      input_.close();
      process_->close_input();
      co_return;
    }
    const auto [failed, count] = co_await asio::async_write(input_, asio::buffer(payload), kAsTuple);
    if (failed) input_.close();  // nobody reads it any more
  }

  void resize(const std::string& payload) {
    const auto value = json::parse(payload, nullptr, false);
    if (!value.is_object()) return;
    const auto side = [&](const char* name) {
      const auto found = value.find(name);
      return found != value.end() && found->is_number_unsigned() ? std::min(found->get<unsigned>(), 10'000U)
                                                                 : 0U;
    };
    if (side("rows") > 0 && side("columns") > 0)
      (void)process_->resize(static_cast<int>(side("rows")), static_cast<int>(side("columns")));
  }

  static constexpr std::size_t kPiece = 32 << 10;
  static constexpr std::size_t kMostAtEnd = 16 << 20;

  std::shared_ptr<engine::ExecProcess> process_;
  Duplex& client_;
  Descriptor input_, output_, ended_;
  std::optional<Descriptor> errors_;
};

/// Ending what runs takes a moment, and is not for this thread, whoever lets go of it last.
std::shared_ptr<engine::ExecProcess> ended_on(FairPool& pool, uid_t caller,
                                              std::shared_ptr<engine::ExecProcess> process) {
  auto* const raw = process.get();
  return {raw, [&pool, caller, last = std::move(process)](auto*) mutable {
            // Without a thread for it, it ends here: it must end.
            (void)pool.post(caller, [ended = std::move(last)] {});
          }};
}

asio::awaitable<void> carry(std::shared_ptr<engine::ExecProcess> process, Duplex& client) {
  Exchange exchange(process, co_await asio::this_coro::executor, client);
  co_await exchange.run();
}

}  // namespace

asio::awaitable<Result<Response>> exec_in_task(const Services& services, const Request& request) {
  DROVER_CO_CHECK_OK(check_upgrade(request, kProtocol));
  if (services.workers->endings.load(request.caller->user.uid) >= kMostEnding)
    co_return fail(ErrorKind::kUnavailable,
                   fmt::format("{} commands of yours have been left and are still being ended", kMostEnding),
                   "try again in a moment");
  DROVER_CO_TRY(const auto body, parse_json(request.body, "The command"));
  DROVER_CO_TRY(auto wanted, decode_request(body));
  const auto start = [&](std::function<void(Result<std::shared_ptr<engine::ExecProcess>>)> done) {
    services.daemon->exec(*request.caller, request.parameters.at("id"), std::move(wanted), std::move(done));
  };
  DROVER_CO_TRY(auto process, co_await callback_result<Result<std::shared_ptr<engine::ExecProcess>>>(start));
  co_return upgrade_response(
      kProtocol, [process = ended_on(services.workers->endings, request.caller->user.uid,
                                     std::move(process))](Duplex& client) { return carry(process, client); });
}

}  // namespace drover::api
