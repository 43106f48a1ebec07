#include "api/mesos/executors.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "api/mesos/executor_call.h"
#include "api/mesos/protobuf_json.h"
#include "api/mesos/stream.h"
#include "api/mesos/uuid.h"
#include "api/mesos/values.h"
#include "api/transaction.h"
#include "control/agents.h"
#include "control/executors.h"
#include "control/status_updates.h"

namespace drover::api::mesos {
namespace {

using control::ExecutorRecord;
using control::ExecutorUpdate;

/// As agents of Mesos do: old executors know no heartbeats, and on loopback a lost connection is seen.
constexpr std::chrono::minutes kExecutorHeartbeat{30};

v1::executor::Event executor_event(v1::executor::Event::Type type) {
  v1::executor::Event event;
  event.set_type(type);
  return event;
}

/// What we have written ourselves.
void read_kept(const std::string& text, google::protobuf::Message& message) {
  (void)from_json(nlohmann::json::parse(text, nullptr, false), message);
}

ExecutorUpdate update_of(const v1::TaskStatus& status, TimePoint now) {
  constexpr double kLatest = 4e9;  // in the year 2096
  ExecutorUpdate update;
  update.task_id = status.task_id().value();
  update.uuid = uuid_text(status.uuid());
  update.state = v1::TaskState_Name(status.state());
  const double seconds = status.timestamp();
  update.at = seconds > 0 && seconds < kLatest
                  ? TimePoint(std::chrono::milliseconds(std::llround(seconds * 1000)))
                  : now;
  update.status = to_json(status);
  return update;
}

/// Tasks of which the executor knows, and that have not ended.
std::set<std::string> received(const v1::executor::Call& call) {
  std::set<std::string> tasks;
  for (const auto& info : call.subscribe().unacknowledged_tasks()) tasks.insert(info.task_id().value());
  for (const auto& update : call.subscribe().unacknowledged_updates())
    if (control::is_terminal(v1::TaskState_Name(update.status().state())))
      tasks.erase(update.status().task_id().value());
  return tasks;
}

v1::executor::Event order_event(const control::ExecutorOrder& order) {
  using Kind = control::ExecutorOrder::Kind;
  const auto& first = *order.tasks.front();
  if (order.kind == Kind::kKill) {
    auto event = executor_event(v1::executor::Event::KILL);
    event.mutable_kill()->mutable_task_id()->set_value(first.task_id);
    if (const auto grace = first.within->kill_grace)
      event.mutable_kill()->mutable_kill_policy()->mutable_grace_period()->set_nanoseconds(
          std::chrono::nanoseconds(*grace).count());
    return event;
  }
  if (order.kind == Kind::kLaunch) {
    auto event = executor_event(v1::executor::Event::LAUNCH);
    read_kept(first.within->info, *event.mutable_launch()->mutable_task());
    return event;
  }
  auto event = executor_event(v1::executor::Event::LAUNCH_GROUP);
  for (const auto* task : order.tasks)
    read_kept(task->within->info, *event.mutable_launch_group()->mutable_task_group()->add_tasks());
  return event;
}

Response has_ended() {
  return text_response(401, "The executor whose token this is has ended");
}

Response taken() {
  auto response = text_response(202, "");
  response.content_type = "";
  return response;
}

}  // namespace

Executors::Executors(boost::asio::io_context& context, engine::Api& daemon, Ports ports)
    : context_(context), daemon_(daemon), ports_(std::move(ports)) {
  std::vector<ExecutorRecord> away;
  for (const auto& [key, executor] : daemon_.state().executors) away.push_back(executor);
  for (const auto& executor : away)
    daemon_.happened(
        control::event::ExecutorDisconnected{executor.framework, executor.executor_id, executor.host});
}

Executors::~Executors() {
  *alive_ = false;
}

void Executors::stop() {
  *alive_ = false;
}

asio::awaitable<Response> Executors::call(const std::string& task, const ExecutorCall& call, MediaType type) {
  const auto* found = control::executor_in(daemon_.state(), task);
  if (found == nullptr) co_return has_ended();
  const auto executor = *found;
  if (call.framework_id().value() != executor.framework || call.executor_id().value() != executor.executor_id)
    co_return text_response(403, "This token is that of another executor than the call names");
  if (call.type() == ExecutorCall::SUBSCRIBE) co_return co_await subscribe(executor, call, type);
  if (!connections_.contains(key_of(executor))) co_return text_response(403, "Executor is not subscribed");
  switch (call.type()) {
    case ExecutorCall::UPDATE:
      co_return co_await update(executor, call);
    case ExecutorCall::MESSAGE:
      ports_.forward_message(executor, call.message().data());
      co_return taken();
    case ExecutorCall::HEARTBEAT:
      co_return taken();
    default:
      co_return text_response(501, "");
  }
}

asio::awaitable<Response> Executors::subscribe(const ExecutorRecord& executor, const ExecutorCall& call,
                                               MediaType type) {
  const auto key = key_of(executor);
  control::event::ExecutorSubscribed subscribed{executor.framework, executor.executor_id, {}, executor.host};
  for (const auto& update : call.subscribe().unacknowledged_updates())
    subscribed.updates.push_back(update_of(update.status(), daemon_.now()));
  const auto kept = co_await in_transaction(daemon_, [&] { return daemon_.change(subscribed); });
  if (!kept) co_return text_response(503, kept.error().message);
  const auto framework = daemon_.state().frameworks.find(executor.framework);
  if (control::executor_in(daemon_.state(), executor.id) == nullptr ||
      framework == daemon_.state().frameworks.end())
    co_return has_ended();
  close(key);
  auto stream = std::make_shared<Stream>(context_.get_executor(), type,
                                         executor_event(ExecutorEvent::HEARTBEAT), kExecutorHeartbeat);
  connections_.insert_or_assign(key, Connection{executor.id, stream, control::ExecutorFeed(received(call))});
  auto event = executor_event(ExecutorEvent::SUBSCRIBED);
  auto& told = *event.mutable_subscribed();
  read_kept(executor.info, *told.mutable_executor_info());
  read_kept(framework->second.info, *told.mutable_framework_info());
  *told.mutable_agent_info() = ports_.describe_agent(executor);
  told.mutable_container_id()->set_value(executor.id);
  stream->send(event);
  for (const auto& update : subscribed.updates) acknowledge(key, update);
  send_pending(key);
  co_return follow(stream, [this, alive = alive_, key, weak = std::weak_ptr(stream)] {
    if (const auto ended = weak.lock(); ended && *alive) gone(key, ended);
  });
}

asio::awaitable<Response> Executors::update(const ExecutorRecord& executor, const ExecutorCall& call) {
  const auto update = update_of(call.update().status(), daemon_.now());
  const auto kept = co_await in_transaction(daemon_, [&] {
    return daemon_.change(
        control::event::ExecutorUpdated{executor.framework, executor.executor_id, update, executor.host});
  });
  if (!kept) co_return text_response(503, to_string(kept.error()));
  acknowledge(key_of(executor), update);
  co_return taken();
}

void Executors::acknowledge(const std::string& key, const ExecutorUpdate& update) {
  const auto connection = connections_.find(key);
  const auto executor = daemon_.state().executors.find(key);
  if (connection == connections_.end() || executor == daemon_.state().executors.end()) return;
  if (!control::is_taken(daemon_.state(), executor->second, update)) return;
  auto event = executor_event(ExecutorEvent::ACKNOWLEDGED);
  event.mutable_acknowledged()->mutable_task_id()->set_value(update.task_id);
  event.mutable_acknowledged()->set_uuid(uuid_bytes(update.uuid).value_or(""));
  connection->second.stream->send(event);
}

void Executors::send_pending(const std::string& key) {
  const auto connection = connections_.find(key);
  const auto executor = daemon_.state().executors.find(key);
  if (connection == connections_.end() || executor == daemon_.state().executors.end()) return;
  for (const auto& order : connection->second.feed.next(daemon_.state(), executor->second))
    connection->second.stream->send(order_event(order));
}

void Executors::send_message(const ExecutorRecord& executor, const std::string& data) {
  const auto connection = connections_.find(key_of(executor));
  if (connection == connections_.end()) return;
  auto event = executor_event(ExecutorEvent::MESSAGE);
  event.mutable_message()->set_data(data);
  connection->second.stream->send(event);
}

void Executors::shut_down(const std::string& key) {
  if (const auto connection = connections_.find(key); connection != connections_.end())
    connection->second.stream->send(executor_event(ExecutorEvent::SHUTDOWN));
}

void Executors::on_notice(const control::Notice& notice) {
  if (const auto* news = std::get_if<control::notice::ExecutorPending>(&notice)) {
    send_pending(control::executor_key(news->framework, news->executor, news->host));
  } else if (const auto* ended = std::get_if<control::notice::ExecutorEnded>(&notice)) {
    close(control::executor_key(ended->framework, ended->executor, ended->host));
  } else if (const auto* moved = std::get_if<control::notice::TaskMoved>(&notice)) {
    const auto& task = moved->record.task;
    const auto connection = connections_.find(
        control::executor_key(task.origin.name, task.origin.task_id, control::host_of(task)));
    const bool is_its = connection != connections_.end() && connection->second.task == task.id;
    if (is_its && moved->record.state == control::TaskState::kStopping) shut_down(connection->first);
    if (is_its && control::is_final(moved->record.state)) close(std::string(connection->first));
  }
}

/// After what was sent.
void Executors::close(const std::string& key) {
  const auto connection = connections_.find(key);
  if (connection == connections_.end()) return;
  connection->second.stream->close();
  connections_.erase(connection);
}

void Executors::gone(const std::string& key, const std::shared_ptr<Stream>& stream) {
  const auto connection = connections_.find(key);
  if (connection == connections_.end() || connection->second.stream != stream) return;
  connections_.erase(connection);
  const auto executor = daemon_.state().executors.find(key);
  if (executor == daemon_.state().executors.end()) return;
  const auto& record = executor->second;
  daemon_.happened(control::event::ExecutorDisconnected{record.framework, record.executor_id, record.host});
}

}  // namespace drover::api::mesos
