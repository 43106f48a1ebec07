// The images that were pulled or loaded. A pull is told of while it goes on, and ends with its connection.

#include "engine/images.h"

#include <fmt/format.h>

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <nlohmann/json.hpp>

#include "api/async.h"
#include "api/native/handlers.h"
#include "api/native/views.h"
#include "api/sse.h"
#include "api/workers.h"
#include "base/decode.h"

namespace drover::api {
namespace {

using nlohmann::json;
using Work = engine::Images::Work;

constexpr std::chrono::milliseconds kLookAtPull{100};

Result<engine::Images*> images_of(const Services& services) {
  if (services.images != nullptr) return services.images;
  return fail(ErrorKind::kUnsupported, "This daemon keeps no images");
}

/// The strings of a body, all of which it must have.
Result<std::map<std::string, std::string>> read_strings(const Request& request,
                                                        const std::vector<std::string>& names) {
  DROVER_TRY(const auto body, parse_json(request.body, "The body"));
  std::vector<Error> mistakes;
  Decoder decoder(body, mistakes);
  std::map<std::string, std::string> values;
  for (const auto& name : names) {
    const auto value = decoder.string(name);
    if (mistakes.empty() && (!value || value->empty())) decoder.mistake(name, "is missing");
    values[name] = value.value_or("");
  }
  decoder.finish();
  if (!mistakes.empty()) return Failure(join_mistakes(mistakes, "The request"));
  return values;
}

json error_view(const Error& error) {
  return json::parse(error_response(error).body)["error"];
}

asio::awaitable<void> follow_pull(std::shared_ptr<Work> work, BodyWriter& writer) {
  asio::steady_timer timer(co_await asio::this_coro::executor);
  auto last = std::chrono::steady_clock::now();
  while (true) {
    const auto report = work->report();
    if (report.progress) co_await writer.write(sse_event("progress", "", view(*report.progress).dump()));
    if (report.outcome) {
      const auto& image = *report.outcome;
      co_await writer.write(image ? sse_event("done", "", view(*image).dump())
                                  : sse_event("error", "", error_view(image.error()).dump()));
      co_return;
    }
    const auto now = std::chrono::steady_clock::now();
    if (report.progress) last = now;
    if (now - last > kSseHeartbeat) {
      co_await writer.write(sse_heartbeat());
      last = now;
    }
    timer.expires_after(kLookAtPull);
    co_await timer.async_wait(kAsTuple);
  }
}

Response live_pull(std::shared_ptr<Work> work) {
  Response response;
  response.content_type = "text/event-stream";
  response.stream = [work](BodyWriter& writer) { return follow_pull(work, writer); };
  return response;
}

}  // namespace

asio::awaitable<Result<Response>> list_images(const Services& services, const Request& request) {
  DROVER_CO_CHECK_OK(Query(request).finish());
  DROVER_CO_TRY(auto* images, images_of(services));
  const auto uid = request.caller->user.uid;
  using Images = std::vector<engine::NamedImage>;
  DROVER_CO_TRY(const auto found, co_await on_pool(services.workers->files, uid,
                                                   [=]() -> Result<Images> { return images->list(uid); }));
  json list = json::array();
  for (const auto& image : found) list.push_back(view(image));
  co_return json_response({{"images", std::move(list)}});
}

asio::awaitable<Result<Response>> inspect_image(const Services& services, const Request& request) {
  DROVER_CO_CHECK_OK(Query(request).finish());
  DROVER_CO_TRY(auto* images, images_of(services));
  const auto search = [images, name = request.parameters.at("name"), uid = request.caller->user.uid] {
    return images->inspect(name, uid);
  };
  DROVER_CO_TRY(const auto found,
                co_await on_pool(services.workers->files, request.caller->user.uid, search));
  co_return json_response(view(found));
}

asio::awaitable<Result<Response>> remove_image(const Services& services, const Request& request) {
  DROVER_CO_CHECK_OK(Query(request).finish());
  DROVER_CO_TRY(auto* images, images_of(services));
  const auto remove = [images, name = request.parameters.at("name"), uid = request.caller->user.uid] {
    return images->remove(name, uid);
  };
  DROVER_CO_TRY(const auto removed,
                co_await on_pool(services.workers->removals, request.caller->user.uid, remove));
  co_return json_response(view(removed));
}

asio::awaitable<Result<Response>> pull_image(const Services& services, const Request& request) {
  DROVER_CO_TRY(auto* images, images_of(services));
  DROVER_CO_TRY(const auto wanted, read_strings(request, {"image"}));
  DROVER_CO_TRY(auto work, images->pull(wanted.at("image"), request.caller->user,
                                        engine::facts_of(services.daemon->state().machine())));
  co_return live_pull(std::move(work));
}

asio::awaitable<Result<Response>> load_image(const Services& services, const Request& request) {
  DROVER_CO_TRY(auto* images, images_of(services));
  DROVER_CO_TRY(const auto wanted, read_strings(request, {"from", "name"}));
  DROVER_CO_TRY(auto work, images->load(wanted.at("from"), wanted.at("name"), request.caller->user));
  co_return live_pull(std::move(work));
}

asio::awaitable<Result<Response>> prune_images(const Services& services, const Request& request) {
  DROVER_CO_TRY(auto* images, images_of(services));
  bool names = false;
  if (!request.body.empty()) {
    DROVER_CO_TRY(const auto body, parse_json(request.body, "The body"));
    std::vector<Error> mistakes;
    Decoder decoder(body, mistakes);
    names = decoder.boolean("all").value_or(false);
    decoder.finish();
    if (!mistakes.empty()) co_return Failure(join_mistakes(mistakes, "The request"));
  }
  const auto prune = [images, names, uid = request.caller->user.uid] { return images->prune(uid, names); };
  DROVER_CO_TRY(const auto pruned,
                co_await on_pool(services.workers->removals, request.caller->user.uid, prune));
  co_return json_response(
      {{"names", pruned.names}, {"blobs", pruned.blobs}, {"layers", pruned.layers}, {"bytes", pruned.bytes}});
}

}  // namespace drover::api
