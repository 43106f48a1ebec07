#include "api/mesos/master.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/ip/address_v4.hpp>
#include <random>

#include "api/mesos/call.h"
#include "api/mesos/protobuf_json.h"
#include "api/mesos/stream.h"
#include "api/mesos/task_info.h"
#include "api/mesos/uuid.h"
#include "api/transaction.h"
#include "base/ids.h"
#include "control/executors.h"
#include "control/frameworks.h"

namespace drover::api::mesos {
namespace {

using control::FrameworkRecord;
using Capability = v1::FrameworkInfo::Capability;

constexpr std::chrono::seconds kTick{1};
/// A client that lost both of its connections subscribes again within half a second.
constexpr std::chrono::milliseconds kPatience{1000};
/// After a restart every framework has lost its connections.
constexpr std::chrono::milliseconds kPatienceAfterRestart{60'000};
constexpr std::size_t kLongestFrameworkId = 255;

std::string random_uuid() {
  std::random_device random;
  const auto number = [&] { return (std::uint64_t{random()} << 32) | random(); };
  const auto high = number();
  return uuid_of(high, number());
}

bool has_capability(const v1::FrameworkInfo& info, Capability::Type wanted) {
  for (const auto& capability : info.capabilities())
    if (capability.type() == wanted) return true;
  return false;
}

FrameworkRecord record_of(const v1::FrameworkInfo& info, const engine::Caller& caller) {
  constexpr double kLongest = 365.0 * 24 * 3600;
  FrameworkRecord record;
  record.name = info.name();
  record.user = info.user().empty() ? caller.user.name : info.user();
  record.owner = caller.user.uid;
  record.owner_name = caller.user.name;
  record.info = to_json(info);
  record.failover_timeout = std::chrono::milliseconds(
      static_cast<std::int64_t>(std::clamp(info.failover_timeout(), 0.0, kLongest) * 1000));
  record.knows_gpus = has_capability(info, Capability::GPU_RESOURCES);
  record.knows_partitions = has_capability(info, Capability::PARTITION_AWARE);
  record.knows_killing = has_capability(info, Capability::TASK_KILLING_STATE);
  return record;
}

using Roles = google::protobuf::RepeatedPtrField<std::string>;

control::Bidder bidder_of(const v1::FrameworkInfo& info, const Roles& suppressed) {
  control::Bidder bidder;
  bidder.knows_gpus = has_capability(info, Capability::GPU_RESOURCES);
  if (info.roles_size() > 0)
    bidder.roles.assign(info.roles().begin(), info.roles().end());
  else if (!info.role().empty())
    bidder.roles = {info.role()};
  bidder.suppressed.insert(suppressed.begin(), suppressed.end());
  return bidder;
}

std::vector<std::string> list_of(const Roles& roles) {
  return {roles.begin(), roles.end()};
}

/// What is wrong with a description; "" when nothing is.
std::string mistake_in(const v1::FrameworkInfo& info, const engine::Caller& caller) {
  if (info.id().value().size() > kLongestFrameworkId || info.id().value().find('/') != std::string::npos)
    return "Framework ID contains invalid characters";
  if (!info.roles().empty() && !has_capability(info, Capability::MULTI_ROLE))
    return "'FrameworkInfo.roles' must not be set when the framework is not MULTI_ROLE capable";
  if (info.has_role() && has_capability(info, Capability::MULTI_ROLE))
    return "'FrameworkInfo.role' must not be set when the framework is MULTI_ROLE capable";
  if (!caller.is_root() && !info.user().empty() && info.user() != caller.user.name)
    return fmt::format("User '{}' is not authorized to run tasks as user '{}'", caller.user.name,
                       info.user());
  if (!(info.failover_timeout() >= 0)) return "The framework failover_timeout must not be negative";
  return "";
}

Event heartbeat() {
  Event event;
  event.set_type(Event::HEARTBEAT);
  return event;
}

Response with_stream_id(Response response, std::string id) {
  response.headers.emplace_back("Mesos-Stream-Id", std::move(id));
  return response;
}

Failure denied(std::string text) {
  return fail(ErrorKind::kInvalid, std::move(text));
}

}  // namespace

Master::Master(boost::asio::io_context& context, engine::Api& daemon, MasterOptions options)
    : context_(context),
      daemon_(daemon),
      options_(std::move(options)),
      started_at_(daemon.now()),
      book_(daemon.state().journal_id),
      executors_(context, daemon,
                 {[this](const auto& executor) { return describe_agent(executor); },
                  [this](const auto& executor, const auto& data) { forward_message(executor, data); }}),
      timer_(context) {
  watch_ = daemon_.watch([this](const control::Notice& notice) { on_notice(notice); });
  std::vector<std::string> away;
  for (const auto& [id, record] : daemon_.state().frameworks)
    if (!record.removed_at) away.push_back(id);
  for (const auto& id : away)
    daemon_.happened(control::event::FrameworkDisconnected{id, kPatienceAfterRestart});
}

Master::~Master() {
  *alive_ = false;
}

void Master::stop() {
  *alive_ = false;
  timer_.cancel();
  escalations_.clear();
  watch_.reset();
  executors_.stop();
}

v1::MasterInfo describe(const std::string& master_id, const MasterOptions& options) {
  v1::MasterInfo info;
  info.set_id(master_id);
  boost::system::error_code error;
  const auto address = boost::asio::ip::make_address_v4(options.ip, error);
  const auto bytes = error ? boost::asio::ip::address_v4::loopback().to_bytes() : address.to_bytes();
  std::uint32_t packed = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) packed = (packed << 8) | bytes[i];
  info.set_ip(packed);
  info.set_port(static_cast<std::uint32_t>(options.port));
  info.set_pid(fmt::format("master@{}:{}", options.ip, options.port));
  info.set_hostname(options.hostname);
  info.set_version(kMesosVersion);
  info.mutable_address()->set_hostname(options.hostname);
  info.mutable_address()->set_ip(options.ip);
  info.mutable_address()->set_port(options.port);
  // No capabilities: they concern agents and operators, and mesos-go gives up on one that it does not know.
  return info;
}

v1::AgentInfo Master::describe_agent(const control::ExecutorRecord& executor) const {
  v1::AgentInfo info;
  info.mutable_id()->set_value(control::agent_id(id(), executor.host));
  info.set_hostname(executor.host.empty() ? options_.hostname : executor.host);
  info.set_port(options_.port);
  return info;
}

// Streams

std::shared_ptr<Stream> Master::open_stream(MediaType type) {
  return std::make_shared<Stream>(context_.get_executor(), type, heartbeat());
}

Response Master::refuse_subscription(MediaType type, std::string message) {
  auto stream = open_stream(type);
  Event event;
  event.set_type(Event::ERROR);
  event.mutable_error()->set_message(std::move(message));
  stream->send(event);
  stream->close();
  return with_stream_id(follow(std::move(stream), [] {}), random_uuid());
}

/// Ends the stream of a framework; `error` is its last event unless it is "".
void Master::close(const std::string& framework, const std::string& error) {
  const auto found = subscribers_.find(framework);
  if (found == subscribers_.end()) return;
  book_.leave(framework);
  const auto stream = found->second.stream;
  if (!error.empty()) {
    Event event;
    event.set_type(Event::ERROR);
    event.mutable_error()->set_message(error);
    stream->send(event);
  }
  stream->close();
  subscribers_.erase(framework);
}

void Master::gone(const std::string& framework, const std::shared_ptr<Stream>& stream) {
  const auto found = subscribers_.find(framework);
  if (found == subscribers_.end() || found->second.stream != stream) return;
  book_.leave(framework);
  subscribers_.erase(found);
  daemon_.happened(control::event::FrameworkDisconnected{framework, kPatience});
  allocate_soon();
}

asio::awaitable<Response> Master::subscribe(const engine::Caller& caller, const Call& call, MediaType type) {
  auto info = call.subscribe().framework_info();
  if (const auto mistake = mistake_in(info, caller); !mistake.empty())
    co_return refuse_subscription(type, mistake);
  bool is_new = false;
  const auto joined = co_await in_transaction(daemon_, [&]() -> Result<std::string> {
    const auto& state = daemon_.state();
    auto id = call.subscribe().framework_info().id().value();
    if (id.empty()) id = control::next_framework_id(state, this->id());
    if (id == marathon_id() || id == chronos_id())
      return fail(ErrorKind::kInvalid, fmt::format("Framework '{}' is part of this master", id));
    const auto known = state.frameworks.find(id);
    if (known != state.frameworks.end() && known->second.owner != caller.user.uid && !caller.is_root())
      return fail(ErrorKind::kPermissionDenied, fmt::format("Framework '{}' belongs to another user", id));
    info.mutable_id()->set_value(id);
    is_new = known == state.frameworks.end();
    DROVER_CHECK_OK(daemon_.change(control::event::FrameworkSubscribed{id, record_of(info, caller)}));
    return id;
  });
  if (!joined) co_return refuse_subscription(type, joined.error().message);
  const auto& id = *joined;
  close(id, "Framework failed over");

  auto stream = open_stream(type);
  const auto stream_id = random_uuid();
  Subscriber subscriber;
  subscriber.id = stream_id;
  subscriber.stream = stream;
  subscriber.knows_refinement = has_capability(info, Capability::RESERVATION_REFINEMENT);
  subscriber.knows_roles = has_capability(info, Capability::MULTI_ROLE);
  subscribers_.insert_or_assign(id, std::move(subscriber));
  book_.join(id, bidder_of(info, call.subscribe().suppressed_roles()));
  Event subscribed;
  subscribed.set_type(Event::SUBSCRIBED);
  subscribed.mutable_subscribed()->mutable_framework_id()->set_value(id);
  subscribed.mutable_subscribed()->set_heartbeat_interval_seconds(kHeartbeat.count());
  *subscribed.mutable_subscribed()->mutable_master_info() = describe(this->id(), options_);
  stream->send(subscribed);
  stream->send(heartbeat());
  send_all_updates(id);
  allocate_soon();
  tick();
  watchers_.notify(id, is_new);
  auto response = follow(stream, [this, alive = alive_, id, weak = std::weak_ptr(stream)] {
    if (const auto ended = weak.lock(); ended && *alive) gone(id, ended);
  });
  co_return with_stream_id(std::move(response), stream_id);
}

// Calls

namespace {

/// The framework of a call, as its caller may use it.
Status check_caller(const control::State& state, const engine::Caller& caller, const std::string& framework) {
  const auto found = state.frameworks.find(framework);
  if (found == state.frameworks.end() || found->second.removed_at ||
      (found->second.owner != caller.user.uid && !caller.is_root()))
    return denied("Framework cannot be found");
  return {};
}

/// No operation ever succeeded here, so none is known.
Response unknown_operations(const Call& call, MediaType type) {
  v1::Response answer;
  answer.set_type(v1::Response::RECONCILE_OPERATIONS);
  auto& statuses = *answer.mutable_reconcile_operations()->mutable_operation_statuses();
  for (const auto& operation : call.reconcile_operations().operations()) {
    auto& status = *statuses.Add();
    *status.mutable_operation_id() = operation.operation_id();
    status.set_state(v1::OPERATION_UNKNOWN);
  }
  return message_response(answer, type);
}

/// Never said of what would be lost with the daemon. What Mesos' own clients do with a 503 is to call again.
Response accepted(const Status& kept = {}) {
  if (!kept)
    return text_response(503,
                         fmt::format("The call could not be kept, call again: {}", to_string(kept.error())));
  auto response = text_response(202, "");
  response.content_type = "";
  return response;
}

}  // namespace

std::set<std::string> Master::connected() const {
  std::set<std::string> ids;
  for (const auto& [id, subscriber] : subscribers_) ids.insert(id);
  return ids;
}

std::set<std::string> Master::users_of(const engine::Caller& caller, const Call& call) const {
  const auto& frameworks = daemon_.state().frameworks;
  const auto found = frameworks.find(call.framework_id().value());
  if (found == frameworks.end() || !check_caller(daemon_.state(), caller, found->first)) return {};
  std::set<std::string> names;
  const auto add_name = [&](const std::string& name) {
    // Others than root have only themselves, whoever a task says that it wants.
    if (found->second.owner == 0 || name == found->second.owner_name) names.insert(name);
  };
  const auto add = [&](const v1::TaskInfo& info) { add_name(user_of(info, found->second.user)); };
  for (const auto& operation : call.accept().operations()) {
    for (const auto& info : operation.launch().task_infos()) add(info);
    for (const auto& info : operation.launch_group().task_group().tasks()) add(info);
    if (const auto& user = operation.launch_group().executor().command().user(); !user.empty())
      add_name(user);
  }
  return names;
}

asio::awaitable<Response> Master::call(const engine::Caller& caller, const Call& call,
                                       const std::string& stream_id, const Users& users) {
  const auto& framework = call.framework_id().value();
  if (const auto allowed = check_caller(daemon_.state(), caller, framework); !allowed)
    co_return text_response(400, allowed.error().message);
  const auto found = subscribers_.find(framework);
  if (found == subscribers_.end()) co_return text_response(403, "Framework is not subscribed");
  if (stream_id.empty())
    co_return text_response(400, "All non-subscribe calls should include the 'Mesos-Stream-Id' header");
  const auto& subscriber = found->second;
  if (stream_id != subscriber.id)
    co_return text_response(
        400, fmt::format("The stream ID '{}' included in this request didn't match the stream ID "
                         "currently associated with framework ID {}",
                         stream_id, framework));
  co_return co_await obey(caller, call, subscriber.stream->type(), users);
}

asio::awaitable<Response> Master::keep(std::function<void()> run) {
  co_return accepted(co_await in_transaction(daemon_, [&]() -> Status {
    run();
    return {};
  }));
}

asio::awaitable<Response> Master::obey(const engine::Caller& caller, const Call& call, MediaType type,
                                       const Users& users) {
  const auto& framework = call.framework_id().value();
  switch (call.type()) {
    case Call::TEARDOWN:
      co_return co_await keep([&] { (void)daemon_.change(control::event::FrameworkTornDown{framework}); });
    case Call::ACCEPT:
      co_await accept(framework, call, users);
      break;
    case Call::DECLINE:
      decline(framework, call);
      break;
    case Call::REVIVE:
      book_.revive(framework, list_of(call.revive().roles()));
      allocate_soon();
      break;
    case Call::SUPPRESS:
      book_.suppress(framework, list_of(call.suppress().roles()));
      break;
    case Call::KILL:
      co_return co_await keep([&] { kill(framework, call); });
    case Call::SHUTDOWN:
      co_return co_await keep([&] { shut_down(framework, call.shutdown()); });
    case Call::ACKNOWLEDGE:
      co_return co_await keep([&] { acknowledge(framework, call); });
    case Call::RECONCILE:
      reconcile(framework, call);
      break;
    case Call::RECONCILE_OPERATIONS:
      co_return unknown_operations(call, type);
    case Call::UPDATE_FRAMEWORK:
      co_return co_await update_framework(caller, call);
    case Call::UNKNOWN:
      co_return text_response(501, "");
    case Call::MESSAGE:
      if (const auto* executor =
              control::executor_named(daemon_.state(), framework, call.message().executor_id().value(),
                                      call.message().agent_id().value()))
        executors_.send_message(*executor, call.message().data());
      break;
    default:  // Mesos ignores REQUEST; nothing is inverse
      break;
  }
  co_return accepted();
}

asio::awaitable<Response> Master::update_framework(const engine::Caller& caller, const Call& call) {
  const auto& framework = call.framework_id().value();
  const auto& update = call.update_framework();
  const auto& info = update.framework_info();
  if (const auto mistake = mistake_in(info, caller); !mistake.empty())
    co_return text_response(400, "'FrameworkInfo' is not valid: " + mistake);
  const auto made = co_await in_transaction(daemon_, [&] {
    return daemon_.change(control::event::FrameworkSubscribed{framework, record_of(info, caller)});
  });
  if (!made) co_return text_response(400, made.error().message);
  const auto found = subscribers_.find(framework);
  if (found == subscribers_.end()) co_return text_response(403, "Framework is not subscribed");
  auto& subscriber = found->second;
  subscriber.knows_refinement = has_capability(info, Capability::RESERVATION_REFINEMENT);
  subscriber.knows_roles = has_capability(info, Capability::MULTI_ROLE);
  for (const auto& offer : book_.change(framework, bidder_of(info, update.suppressed_roles())))
    send_rescind(framework, offer);
  allocate_soon();
  watchers_.notify(framework, false);
  co_return text_response(200, "");
}

void Master::on_notice(const control::Notice& notice) {
  executors_.on_notice(notice);
  if (const auto* update = std::get_if<control::notice::StatusUpdated>(&notice))
    send_next_update(update->framework, update->task_id);
  else if (const auto* ended = std::get_if<control::notice::ExecutorEnded>(&notice))
    send_failure(*ended);
  else if (const auto* removed = std::get_if<control::notice::FrameworkRemoved>(&notice))
    close(removed->framework, "");
  else if (std::holds_alternative<control::notice::TaskMoved>(notice))
    allocate_soon();
}

void Master::tick() {
  timer_.expires_after(kTick);
  timer_.async_wait([this, alive = alive_](const auto& error) {
    if (error || !*alive) return;
    const auto now = Clock::now();
    for (auto& [framework, subscriber] : subscribers_) {
      std::vector<std::string> late;
      for (const auto& [task, sent] : subscriber.unacknowledged)
        if (sent.again <= now) late.push_back(task);
      for (const auto& task : late) send_next_update(framework, task);
    }
    allocate();
    if (!subscribers_.empty()) tick();
  });
}

}  // namespace drover::api::mesos
