#include <nlohmann/json.hpp>

#include "api/async.h"
#include "api/native/handlers.h"
#include "api/native/views.h"
#include "base/decode.h"

namespace drover::api {

using nlohmann::json;

Result<Response> get_version(const Services& services, const Request& request) {
  DROVER_CHECK_OK(Query(request).finish());
  return json_response({{"version", services.version}, {"api", "v1"}});
}

Result<Response> get_health(const Services& services, const Request& request) {
  DROVER_CHECK_OK(Query(request).finish());
  const auto inventory = services.daemon->inventory();
  auto problems = inventory.problems;
  for (const auto& device : inventory.devices)
    if (!device.unfit.empty())
      problems.push_back({ErrorKind::kUnavailable,
                          "GPU " + std::to_string(device.index) + " is unfit: " + device.unfit, "", ""});
  json health = {{"status", problems.empty() ? "ok" : "degraded"}};
  // Strangers learn that the daemon lives, not what the machine is like.
  if (request.caller) health["problems"] = view(problems);
  return json_response(health);
}

Result<Response> list_nodes(const Services& services, const Request& request) {
  DROVER_CHECK_OK(Query(request).finish());
  auto node = view(services.daemon->node());
  const auto inventory = services.daemon->inventory();
  node["simulated"] = inventory.simulated;
  node["simulation"] = inventory.simulation;
  return json_response({{"nodes", json::array({std::move(node)})}});
}

Result<Response> list_gpus(const Services& services, const Request& request) {
  DROVER_CHECK_OK(Query(request).finish());
  return json_response(view_gpus(services.daemon->inventory(), services.daemon->holders(*request.caller)));
}

Result<Response> get_topology(const Services& services, const Request& request) {
  DROVER_CHECK_OK(Query(request).finish());
  return json_response(view_topology(services.daemon->inventory()));
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
