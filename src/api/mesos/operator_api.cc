#include "api/mesos/operator_api.h"

#include <fmt/format.h>
#include <google/protobuf/arena.h>
#include <google/protobuf/descriptor.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string_view>

#include "api/mesos/call.h"
#include "api/mesos/files.h"
#include "api/mesos/operator.h"
#include "api/mesos/operator_protocol.h"
#include "api/mesos/operator_stream.h"
#include "api/mesos/protobuf_json.h"
#include "api/mesos/v1_views.h"
#include "api/mesos/values.h"
#include "base/base64.h"

namespace drover::api::mesos {
namespace {

using google::protobuf::Message;
using nlohmann::json;

/// What one of the two is asked, and how it answers. Each type of call has a field of the same name, in lower
/// case: in the answer, and in the call if that has parameters.
struct Side {
  std::string_view name;
  const Message& call;
  const Message& answer;
  std::map<std::string_view, V1View> views;  ///< by type of call
};

const Side& master_side() {
  static const Side side{"master",
                         v1::master::Call::default_instance(),
                         v1::master::Response::default_instance(),
                         {{"GET_HEALTH", v1_health},
                          {"GET_FLAGS", v1_flags},
                          {"GET_VERSION", v1_version},
                          {"GET_METRICS", v1_metrics},
                          {"GET_LOGGING_LEVEL", v1_logging_level},
                          {"GET_STATE", v1_state},
                          {"GET_AGENTS", v1_agents},
                          {"GET_FRAMEWORKS", v1_frameworks},
                          {"GET_EXECUTORS", v1_executors},
                          {"GET_OPERATIONS", v1_nothing},
                          {"GET_TASKS", v1_tasks},
                          {"GET_ROLES", v1_roles},
                          {"GET_WEIGHTS", v1_nothing},
                          {"GET_MASTER", v1_master},
                          {"GET_MAINTENANCE_STATUS", v1_no_status},
                          {"GET_MAINTENANCE_SCHEDULE", v1_no_schedule},
                          {"GET_QUOTA", v1_no_status}}};
  return side;
}

const Side& agent_side() {
  static const Side side{"agent",
                         v1::agent::Call::default_instance(),
                         v1::agent::Response::default_instance(),
                         {{"GET_HEALTH", v1_health},
                          {"GET_FLAGS", v1_flags},
                          {"GET_VERSION", v1_version},
                          {"GET_METRICS", v1_metrics},
                          {"GET_LOGGING_LEVEL", v1_logging_level},
                          {"GET_STATE", v1_agent_state},
                          {"GET_CONTAINERS", v1_containers},
                          {"GET_FRAMEWORKS", v1_frameworks},
                          {"GET_EXECUTORS", v1_executors},
                          {"GET_OPERATIONS", v1_nothing},
                          {"GET_TASKS", v1_agent_tasks},
                          {"GET_AGENT", v1_agent},
                          {"GET_RESOURCE_PROVIDERS", v1_nothing}}};
  return side;
}

std::string field_of(std::string type) {
  for (auto& c : type) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return type;
}

/// The call as JSON, whatever language it came in.
tl::expected<json, Response> read_operator_call(const Side& side, const Request& request) {
  const std::unique_ptr<Message> call(side.call.New());
  if (auto read = read_message(request, *call); !read) return tl::unexpected(std::move(read.error()));
  return json::parse(to_json(*call));
}

Status validate_operator_call(const Side& side, const json& call) {
  if (!call.contains("type")) return invalid("Expecting 'type' to be present");
  const auto field = field_of(call["type"]);
  if (side.call.GetDescriptor()->FindFieldByName(field) != nullptr && !call.contains(field))
    return invalid(fmt::format("Expecting '{}' to be present", field));
  return {};
}

/// What answers a call, from the message of its field in the answer.
using Fill = std::function<Status(Message& field)>;

Result<Response> answer(const Side& side, const std::string& type, const Fill& fill, MediaType language) {
  // Of thousands of tasks each has some twenty messages: on the arena they come and go together.
  google::protobuf::Arena arena;
  auto* const message = side.answer.New(&arena);
  DROVER_CHECK_OK(from_json({{"type", type}}, *message));
  const auto* const field = message->GetDescriptor()->FindFieldByName(field_of(type));
  DROVER_CHECK_OK(fill(*message->GetReflection()->MutableMessage(message, field)));
  if (!message->IsInitialized())
    return fail(ErrorKind::kInternal, fmt::format("The answer to '{}' is not whole", type));
  auto response = message_response(*message, language);
  response.read_only = true;
  return response;
}

/// As stat(2) has it.
unsigned mode_of(const FileInfo& file) {
  const unsigned kind = file.kind == "directory" ? S_IFDIR : file.kind == "link" ? S_IFLNK : S_IFREG;
  return file.mode | (file.kind == "other" ? 0 : kind);
}

json file_message(const ListedFile& listed) {
  const auto& file = listed.file;
  return {{"path", listed.path},
          {"nlink", file.kind == "directory" ? 2 : 1},
          {"size", file.size},
          {"mtime", {{"nanoseconds", file.modified_at.time_since_epoch().count() * 1'000'000}}},
          {"mode", mode_of(file)},
          {"uid", listed.user},
          {"gid", std::to_string(file.gid)}};
}

asio::awaitable<Result<Response>> answer_files(const Side& side, const Services& services,
                                               const engine::Caller& caller, const json& call,
                                               MediaType language) {
  const auto show = [&side, language](const std::vector<ListedFile>& files) {
    json infos = json::array();
    for (const auto& file : files) infos.push_back(file_message(file));
    return answer(
        side, "LIST_FILES",
        [&](Message& field) { return from_json({{"file_infos", std::move(infos)}}, field); }, language);
  };
  co_return co_await list_files(services, caller, call.at("path"), show);
}

asio::awaitable<Result<Response>> answer_piece(const Side& side, const Services& services,
                                               const engine::Caller& caller, const json& call,
                                               MediaType language) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();
  const auto number = [&](const char* name, std::uint64_t fallback) {
    return static_cast<std::int64_t>(std::min(call.value(name, fallback), kMost));
  };
  const auto show = [&side, language](FilePiece piece) {
    return answer(
        side, "READ_FILE",
        [&](Message& field) {
          return from_json({{"size", piece.size}, {"data", encode_base64(piece.data)}}, field);
        },
        language);
  };
  const WantedPiece wanted{number("offset", 0), number("length", kMost)};
  co_return co_await read_file(services, caller, call.at("path"), wanted, show);
}

/// Why not, and where that is done instead.
Response refuse_call(const std::string& type) {
  static const std::map<std::string_view, std::string_view> kElsewhere{
      {"SET_LOGGING_LEVEL", ": 'drover serve --log-level' says what is logged"},
      {"SET_QUOTA", ": quotas are those of queues, 'drover quota set'"},
      {"UPDATE_QUOTA", ": quotas are those of queues, 'drover quota set'"},
      {"REMOVE_QUOTA", ": quotas are those of queues, 'drover quota remove'"},
      {"LAUNCH_NESTED_CONTAINER_SESSION", ": 'drover exec' runs a command in a container"},
      {"PRUNE_IMAGES", ": 'drover image' removes images"}};
  if (type == "UNKNOWN") return text_response(501, "");
  const auto found = kElsewhere.find(type);
  return text_response(501, fmt::format("The call '{}' is not implemented here{}", type,
                                        found == kElsewhere.end() ? "" : found->second));
}

asio::awaitable<Result<Response>> serve_call(const Side& side, const Services& services,
                                             const Request& request, const json& call) {
  if (const auto valid = validate_operator_call(side, call); !valid)
    co_return text_response(400,
                            fmt::format("Failed to validate {}::Call: {}", side.name, valid.error().message));
  const auto language = answer_type(request);
  if (!language) co_return language.error();
  const auto& caller = *request.caller;
  const std::string type = call["type"];
  if (type == "LIST_FILES")
    co_return co_await answer_files(side, services, caller, call["list_files"], *language);
  if (type == "READ_FILE")
    co_return co_await answer_piece(side, services, caller, call["read_file"], *language);
  if (type == "SUBSCRIBE") co_return co_await subscribe_operator(services, caller, *language);
  if (type == "TEARDOWN") {
    const std::string framework = call["teardown"]["framework_id"]["value"];
    co_return co_await tear_down(services, caller, framework);
  }
  const auto view = side.views.find(type);
  if (view == side.views.end()) co_return refuse_call(type);
  const auto write = [&side, type, view = view->second, snapshot = snapshot_of(services, caller),
                      language = *language] {
    return answer(side, type, [&](Message& field) { return view(snapshot, field); }, language);
  };
  co_return co_await write_beside(services, caller, write);
}

}  // namespace

asio::awaitable<Result<Response>> call_master(const Services& services, const Request& request) {
  const auto call = read_operator_call(master_side(), request);
  if (!call) co_return call.error();
  if (!call->contains("type"))
    if (const auto other = read_operator_call(agent_side(), request); other && other->contains("type"))
      co_return co_await serve_call(agent_side(), services, request, *other);
  co_return co_await serve_call(master_side(), services, request, *call);
}

asio::awaitable<Result<Response>> call_agent(const Services& services, const Request& request) {
  const auto call = read_operator_call(agent_side(), request);
  if (!call) co_return call.error();
  co_return co_await serve_call(agent_side(), services, request, *call);
}

}  // namespace drover::api::mesos
