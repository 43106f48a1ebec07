// Queues, quotas and cordons. PUT writes one whole, or of several all or none; PATCH changes what it names
// (RFC 7396) and makes it if need be.

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "api/async.h"
#include "api/native/handlers.h"
#include "api/native/views.h"
#include "api/transaction.h"
#include "api/workers.h"
#include "base/decode.h"
#include "placement/rules_json.h"

namespace drover::api {

using nlohmann::json;

namespace {

constexpr std::size_t kLongestReason = 256;

Result<json> parse_object(const std::string& body) {
  DROVER_TRY(auto value, parse_json(body, "The body"));
  if (!value.is_object())
    return fail(ErrorKind::kInvalid, fmt::format("expected an object, found {}", value.type_name()), "", "/");
  return value;
}

/// What PUT or PATCH makes of what was there. `name` says what the address has named already.
json changed(const Request& request, json before, const json& body) {
  if (request.method == "PUT") return body;
  before.merge_patch(body);
  return before;
}

/// The address says which one it is; a body that says another is a mistake.
Status name_it(json& value, const std::string& field, const std::string& name) {
  if (value.contains(field) && value[field] != name)
    return fail(ErrorKind::kInvalid, fmt::format("the address names '{}'", name), "leave it out",
                "/" + field);
  value[field] = name;
  return {};
}

json current_queue(const engine::Decisions& daemon, const std::string& path) {
  const auto& queues = daemon.state().rules.queues;
  const auto found = queues.find(path);
  return found == queues.end() ? json::object() : placement::encode(found->second);
}

struct Whose {
  std::string kind;  ///< "user" or "namespace"
  std::string name;
};

/// "user:alice", "namespace:team-a"
Result<Whose> parse_subject(const std::string& text) {
  const auto colon = text.find(':');
  Whose whose{text.substr(0, colon), colon == std::string::npos ? "" : text.substr(colon + 1)};
  if ((whose.kind != "user" && whose.kind != "namespace") || whose.name.empty())
    return fail(ErrorKind::kInvalid, fmt::format("'{}' does not say whose quota it is", text),
                "write for example user:alice or namespace:team-a");
  return whose;
}

json current_quota(const engine::Views& daemon, const engine::Caller& caller, const Whose& whose) {
  for (const auto& view : daemon.quotas(caller)) {
    auto quota = placement::encode(view.quota);
    if (quota.value(whose.kind, "") == whose.name) return quota;
  }
  return json::object();
}

/// Of one queue, or quota: the field alone.
Error about_one(Error error) {
  error.path = placement::rule_path(error.path).field;
  return error;
}

/// Of one in a list, where `names` are those of the list: "/queues/1/limit/gpus". What is about another has
/// no path.
Error about_one_of(Error error, const std::string& list, const std::vector<std::string>& names) {
  const auto [rule, field] = placement::rule_path(error.path);
  const auto is_it = [&](const auto& name) {
    return rule == fmt::format("/{}/{}", list, pointer_token(name));
  };
  const auto found = std::ranges::find_if(names, is_it);
  error.path = found == names.end() ? "" : fmt::format("/{}/{}{}", list, found - names.begin(), field);
  return error;
}

/// Those of {"queues": […]}; a mistake in one refuses them all, and so does one that is there twice.
template <typename T>
Result<std::vector<T>> read_list(const std::string& body, const std::string& list,
                                 placement::Read<T> (*read)(const json&), std::string (*name_of)(const T&)) {
  DROVER_TRY(const auto value, parse_object(body));
  std::vector<Error> mistakes;
  Decoder decoder(value, mistakes);
  std::vector<T> all;
  std::set<std::string> names;
  const auto count = decoder.objects(list).size();
  if (!value.contains(list)) decoder.mistake(list, "missing");
  for (std::size_t i = 0; mistakes.empty() && i < count; ++i) {
    auto one = read(value[list][i]);
    const auto at = fmt::format("/{}/{}", list, i);
    if (!one) {
      for (auto& mistake : one.error()) mistake.path = at + mistake.path;
      mistakes = std::move(one.error());
    } else if (const auto name = name_of(*one); !names.insert(name).second) {
      mistakes.push_back(
          {ErrorKind::kInvalid, fmt::format("'{}' is there twice", name), "leave one out", at});
    } else {
      all.push_back(std::move(*one));
    }
  }
  decoder.finish();
  if (!mistakes.empty()) return Failure(join_mistakes(mistakes, "The list"));
  return all;
}

std::string path_of(const placement::Queue& queue) {
  return queue.path;
}
std::string subject_of(const placement::Quota& quota) {
  return placement::to_string(quota.subject);
}

/// A list of queues, or of quotas, as PUT writes it.
template <typename T>
struct RuleList {
  std::string name;
  placement::Read<T> (*read)(const json&);
  std::string (*name_of)(const T&);
  Status (*set)(engine::Decisions&, const engine::Caller&, const std::vector<T>&);
};

template <typename T>
asio::awaitable<Result<Response>> set_list(const Services& services, const Request& request,
                                           const RuleList<T>& list) {
  DROVER_CO_CHECK_OK(Query(request).finish());
  const auto read = [&] { return read_list(request.body, list.name, list.read, list.name_of); };
  DROVER_CO_TRY(const auto all,
                co_await on_pool(services.workers->submissions, request.caller->user.uid, read));
  auto& daemon = *services.decisions;
  co_return co_await in_transaction(daemon, [&]() -> Result<Response> {
    std::vector<std::string> names;
    json shown = json::array();
    for (const auto& each : all) {
      names.push_back(list.name_of(each));
      shown.push_back(placement::encode(each));
    }
    if (const auto set = list.set(daemon, *request.caller, all); !set)
      return Failure(about_one_of(set.error(), list.name, names));
    return json_response({{list.name, std::move(shown)}});
  });
}

/// The word for the whole machine; a GPU by its UUID or its index.
Result<std::string> parse_cordoned(const engine::Views& daemon, const std::string& text) {
  if (text == "machine") return std::string(placement::kWholeMachine);
  for (const auto& device : daemon.inventory().devices)
    if (device.uuid == text || std::to_string(device.index) == text) return device.uuid;
  return text;  // one that was there when it was cordoned
}

/// {"reason": "a fan is loud"}, or nothing.
Result<std::string> decode_reason(const std::string& body) {
  if (body.empty()) return std::string();
  DROVER_TRY(const auto value, parse_object(body));
  std::vector<Error> mistakes;
  Decoder decoder(value, mistakes);
  auto reason = decoder.string("reason").value_or("");
  if (reason.size() > kLongestReason)
    decoder.mistake("reason", fmt::format("it has more than {} bytes", kLongestReason));
  decoder.finish();
  if (!mistakes.empty()) return Failure(join_mistakes(mistakes, "The cordon"));
  return reason;
}

Response no_content() {
  Response response;
  response.status = 204;
  return response;
}

}  // namespace

Result<Write> list_queues(const Services& services, const Request& request) {
  DROVER_CHECK_OK(Query(request).finish());
  return [queues = services.daemon->queues(*request.caller)]() -> Result<Response> {
    json views = json::array();
    for (const auto& queue : queues()) views.push_back(view(queue));
    return json_response({{"queues", std::move(views)}});
  };
}

asio::awaitable<Result<Response>> set_queues(const Services& services, const Request& request) {
  static const RuleList<placement::Queue> list{
      "queues", placement::read_queue, path_of,
      [](engine::Decisions& daemon, const engine::Caller& caller, const std::vector<placement::Queue>& all) {
        return daemon.set_rules(caller, all, {});
      }};
  return set_list(services, request, list);
}

asio::awaitable<Result<Response>> set_queue(const Services& services, const Request& request) {
  DROVER_CO_CHECK_OK(Query(request).finish());
  DROVER_CO_TRY(const auto body, parse_object(request.body));
  auto& daemon = *services.daemon;
  const auto& path = request.parameters.at("queue");
  co_return co_await in_transaction(daemon, [&]() -> Result<Response> {
    auto value = changed(request, current_queue(daemon, path), body);
    DROVER_CHECK_OK(name_it(value, "queue", path));
    DROVER_TRY(auto queue, placement::decode_queue(value));
    if (const auto set = daemon.set_rules(*request.caller, {queue}, {}); !set)
      return Failure(about_one(set.error()));
    return json_response(placement::encode(queue));
  });
}

asio::awaitable<Result<Response>> remove_queue(const Services& services, const Request& request) {
  DROVER_CO_CHECK_OK(Query(request).finish());
  auto& daemon = *services.daemon;
  const auto& path = request.parameters.at("queue");
  DROVER_CO_CHECK_OK(
      co_await in_transaction(daemon, [&] { return daemon.remove_queue(*request.caller, path); }));
  co_return no_content();
}

Result<Response> list_quotas(const Services& services, const Request& request) {
  DROVER_CHECK_OK(Query(request).finish());
  json quotas = json::array();
  for (const auto& quota : services.daemon->quotas(*request.caller)) quotas.push_back(view(quota));
  return json_response({{"quotas", std::move(quotas)}});
}

asio::awaitable<Result<Response>> set_quotas(const Services& services, const Request& request) {
  static const RuleList<placement::Quota> list{
      "quotas", placement::read_quota, subject_of,
      [](engine::Decisions& daemon, const engine::Caller& caller, const std::vector<placement::Quota>& all) {
        return daemon.set_rules(caller, {}, all);
      }};
  return set_list(services, request, list);
}

asio::awaitable<Result<Response>> set_quota(const Services& services, const Request& request) {
  DROVER_CO_CHECK_OK(Query(request).finish());
  DROVER_CO_TRY(const auto whose, parse_subject(request.parameters.at("subject")));
  DROVER_CO_TRY(const auto body, parse_object(request.body));
  auto& daemon = *services.daemon;
  co_return co_await in_transaction(daemon, [&]() -> Result<Response> {
    auto value = changed(request, current_quota(daemon, *request.caller, whose), body);
    DROVER_CHECK_OK(name_it(value, whose.kind, whose.name));
    DROVER_TRY(auto quota, placement::decode_quota(value));
    if (const auto set = daemon.set_rules(*request.caller, {}, {quota}); !set)
      return Failure(about_one(set.error()));
    return json_response(placement::encode(quota));
  });
}

asio::awaitable<Result<Response>> remove_quota(const Services& services, const Request& request) {
  DROVER_CO_CHECK_OK(Query(request).finish());
  DROVER_CO_TRY(const auto whose, parse_subject(request.parameters.at("subject")));
  const auto kind = whose.kind == "user" ? placement::SubjectKind::kUser : placement::SubjectKind::kNamespace;
  auto& daemon = *services.daemon;
  DROVER_CO_CHECK_OK(co_await in_transaction(
      daemon, [&] { return daemon.remove_quota(*request.caller, {kind, whose.name}); }));
  co_return no_content();
}

asio::awaitable<Result<Response>> set_cordon(const Services& services, const Request& request) {
  DROVER_CO_CHECK_OK(Query(request).finish());
  DROVER_CO_TRY(const auto reason, decode_reason(request.body));
  auto& daemon = *services.daemon;
  DROVER_CO_TRY(const auto gpu, parse_cordoned(daemon, request.parameters.at("gpu")));
  DROVER_CO_CHECK_OK(
      co_await in_transaction(daemon, [&] { return daemon.set_cordon(*request.caller, gpu, reason); }));
  co_return no_content();
}

asio::awaitable<Result<Response>> remove_cordon(const Services& services, const Request& request) {
  DROVER_CO_CHECK_OK(Query(request).finish());
  auto& daemon = *services.daemon;
  DROVER_CO_TRY(const auto gpu, parse_cordoned(daemon, request.parameters.at("gpu")));
  DROVER_CO_CHECK_OK(
      co_await in_transaction(daemon, [&] { return daemon.set_cordon(*request.caller, gpu, std::nullopt); }));
  co_return no_content();
}

}  // namespace drover::api
