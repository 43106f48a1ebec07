#include <fmt/format.h>
#include <sys/stat.h>

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "api/async.h"
#include "api/download.h"
#include "api/native/handlers.h"
#include "api/native/measured.h"
#include "api/native/views.h"
#include "api/sse.h"
#include "api/wakeup.h"
#include "api/workers.h"
#include "base/decode.h"
#include "base/file_view.h"
#include "base/json_text.h"

namespace drover::api {

using nlohmann::json;

Result<Response> get_version(const Services& services, const Request& request) {
  DROVER_CHECK_OK(Query(request).finish());
  json version = {{"version", services.version}, {"api", "v1"}};
  // For who is on this machine, and may be in another container: whether paths mean the same to him.
  if (request.caller) version["file_view"] = file_view();
  return json_response(std::move(version));
}

Result<Response> get_health(const Services& services, const Request& request) {
  DROVER_CHECK_OK(Query(request).finish());
  const auto inventory = services.daemon->inventory();
  auto problems = inventory.problems;
  for (auto& problem : services.daemon->problems()) problems.push_back(std::move(problem));
  for (const auto& device : inventory.devices)
    if (const auto illness = gpu::illness_of(device); !illness.empty())
      problems.push_back(
          {ErrorKind::kUnavailable, fmt::format("GPU {} is unfit: {}", device.index, illness), "", ""});
  json health = {{"status", problems.empty() ? "ok" : "degraded"}};
  // Strangers learn that the daemon lives, not what the machine is like.
  if (request.caller) health["problems"] = view(problems);
  return json_response(health);
}

Result<Response> list_nodes(const Services& services, const Request& request) {
  DROVER_CHECK_OK(Query(request).finish());
  json nodes = json::array();
  for (const auto& [node, inventory] : services.daemon->machines()) {
    nodes.push_back(view(node));
    nodes.back()["simulated"] = inventory.simulated;
    nodes.back()["simulation"] = inventory.simulation;
  }
  return json_response({{"nodes", std::move(nodes)}});
}

namespace {

/// What each GPU is, who has it, and what it does, for this caller now.
asio::awaitable<Result<Response>> gpus_now(const Services& services, engine::Caller caller, bool with_usage,
                                           bool on_one_line = false) {
  const auto& daemon = *services.daemon;
  std::optional<Measured> measured;
  if (with_usage) {
    DROVER_CO_TRY(measured, co_await measure(services, caller));
  }
  const auto write = [machines = daemon.machines(), holders = daemon.holders(caller),
                      measured = std::move(measured), on_one_line]() -> Result<Response> {
    auto shown = view_gpus(machines, holders());
    if (measured)
      for (auto& gpu : shown["gpus"]) gpu["usage"] = view_usage(*measured, gpu.value("uuid", ""));
    return on_one_line ? Response{.body = to_text(shown)} : json_response(shown);
  };
  co_return co_await write_beside(services, caller, write);
}

/// All of it whenever something of it is new, once a second at most, but soon after an event.
asio::awaitable<void> follow_gpus(const Services& services, engine::Caller caller, bool with_usage,
                                  BodyWriter& writer) {
  constexpr std::chrono::seconds kPause{1};
  constexpr std::chrono::milliseconds kSoon{200};
  const auto executor = co_await asio::this_coro::executor;
  Wakeup wakeup(executor, *services.daemon);
  asio::steady_timer timer(executor);
  std::string told;
  auto told_at = std::chrono::steady_clock::now();
  while (true) {
    const auto now = co_await gpus_now(services, caller, with_usage, true);
    if (!now) throw std::runtime_error(now.error().message);
    const bool is_new = now->body != told;
    if (is_new || std::chrono::steady_clock::now() - told_at > kSseHeartbeat) {
      co_await writer.write(is_new ? sse_event("gpus", "", now->body) : sse_heartbeat());
      told = now->body;
      told_at = std::chrono::steady_clock::now();
    }
    if (!co_await wakeup.wait(kPause)) continue;
    timer.expires_after(kSoon);
    co_await timer.async_wait(kAsTuple);
  }
}

}  // namespace

asio::awaitable<Result<Response>> list_gpus(const Services& services, const Request& request) {
  Query query(request);
  const bool with_usage = query.boolean("usage", false);
  const bool follow = query.boolean("follow", false);
  DROVER_CO_CHECK_OK(query.finish());
  if (!follow) co_return co_await gpus_now(services, *request.caller, with_usage);
  Response response;
  response.content_type = "text/event-stream";
  // A cluster's GPUs are not looked at, and who has them is told all the same.
  const bool measured = with_usage && services.measure_gpus;
  response.stream = [&services, caller = *request.caller, measured](BodyWriter& writer) {
    return follow_gpus(services, caller, measured, writer);
  };
  co_return response;
}

Result<Response> get_topology(const Services& services, const Request& request) {
  DROVER_CHECK_OK(Query(request).finish());
  return json_response(view_topology(services.daemon->machines()));
}

asio::awaitable<Result<Response>> get_backup(const Services& services, const Request& request) {
  DROVER_CO_CHECK_OK(Query(request).finish());
  using Answer = Result<std::shared_ptr<UniqueFd>>;
  const auto start = [&](auto done) { services.daemon->backup(*request.caller, std::move(done)); };
  DROVER_CO_TRY(const auto copy, co_await callback_result<Answer>(start));
  struct stat info{};
  if (::fstat(copy->get(), &info) != 0) co_return fail_errno("Failed to look at the copy", errno);
  SandboxFile file{std::move(*copy), static_cast<std::uint64_t>(info.st_size), info.st_ino};
  co_return download_response(services.workers->files, request.caller->user.uid, content_of(std::move(file)),
                              "drover.backup");
}

asio::awaitable<Result<Response>> get_cdi(const Services& services, const Request& request) {
  DROVER_CO_CHECK_OK(Query(request).finish());
  auto& daemon = *services.daemon;
  const auto start = [&](auto done) { daemon.cdi(std::move(done)); };
  DROVER_CO_TRY(const auto text, co_await callback_result<Result<std::string>>(start));
  DROVER_CO_TRY(auto specification, parse_json(text, "The CDI specification"));
  co_return json_response(std::move(specification));
}

}  // namespace drover::api
