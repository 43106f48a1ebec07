// What operators end, and what they ask after that is not kept here.

#include <nlohmann/json.hpp>

#include "api/mesos/call.h"
#include "api/mesos/operator.h"
#include "api/mesos/views.h"
#include "api/transaction.h"

namespace drover::api::mesos {

asio::awaitable<Result<Response>> tear_down(const Services& services, const engine::Caller& caller,
                                            const std::string& framework) {
  auto& daemon = *services.daemon;
  auto answer = co_await in_transaction(daemon, [&]() -> Result<Response> {
    const auto& frameworks = daemon.state().frameworks;
    const auto found = frameworks.find(framework);
    if (found == frameworks.end() || found->second.removed_at || !may_see(caller, found->second))
      return text_response(400, "No framework found with specified ID");
    const auto made = daemon.change(control::event::FrameworkTornDown{framework});
    return made ? text_response(200, "") : text_response(400, made.error().message);
  });
  if (!answer) co_return text_response(503, to_string(answer.error()));
  co_return std::move(*answer);
}

asio::awaitable<Result<Response>> post_teardown(const Services& services, const Request& request) {
  Request form;
  if (!parse_target("/?" + request.body, form)) co_return text_response(400, "Unable to decode query string");
  const auto id = form.query.find("frameworkId");
  if (id == form.query.end())
    co_return text_response(400, "Missing 'frameworkId' query parameter in the request body");
  co_return co_await tear_down(services, *request.caller, id->second);
}

Result<Response> get_quota(const Services&, const Request&) {
  return compact({{"infos", nlohmann::json::array()}});
}

Result<Response> get_weights(const Services&, const Request&) {
  return compact(nlohmann::json::array());
}

Result<Response> get_maintenance(const Services&, const Request&) {
  return compact(nlohmann::json::object());
}

}  // namespace drover::api::mesos
