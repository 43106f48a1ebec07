#include "api/mesos/operator_stream.h"

#include <boost/asio/this_coro.hpp>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "api/async.h"
#include "api/mesos/executor_tasks.h"
#include "api/mesos/operator_protocol.h"
#include "api/mesos/protobuf_json.h"
#include "api/mesos/stream.h"
#include "api/mesos/v1_views.h"
#include "api/mesos/values.h"
#include "api/workers.h"

namespace drover::api::mesos {
namespace {

using control::TaskRecord;
using nlohmann::json;

v1::master::Event event_of(const json& value) {
  v1::master::Event event;
  // What the views make fits the messages: a test asks for each of them.
  (void)from_json(value, event);
  return event;
}

/// What a subscriber is told first, and the tasks of which he knows by it that have not ended.
struct Beginning {
  v1::master::Event subscribed;
  std::set<std::string> known;  ///< Drover's ids
};

Result<Beginning> beginning_of(const Snapshot& snapshot) {
  Beginning beginning;
  beginning.subscribed = event_of(
      {{"type", "SUBSCRIBED"}, {"subscribed", {{"heartbeat_interval_seconds", kHeartbeat.count()}}}});
  DROVER_CHECK_OK(v1_state(snapshot, *beginning.subscribed.mutable_subscribed()->mutable_get_state()));
  for (const auto& framework : frameworks_for(snapshot, false))
    for (const auto* task : framework.tasks)
      if (!control::is_final(task->state)) beginning.known.insert(task->task.id);
  return beginning;
}

/// One subscriber. Hears of changes as long as it lives, and tells of them from begin() on.
class Watcher {
 public:
  Watcher(const Services& services, engine::Caller caller, MediaType type,
          const boost::asio::any_io_executor& executor)
      : services_(services),
        caller_(std::move(caller)),
        stream_(std::make_shared<Stream>(executor, type, event_of({{"type", "HEARTBEAT"}}))) {
    watch_ = services_.daemon->watch(
        [this](const control::Notice& notice) { in_time([this, notice] { on_notice(notice); }); });
    framework_watch_ = services_.mesos->watch_frameworks([this](const std::string& id, const bool& is_new) {
      in_time([this, id, is_new] { on_framework(id, is_new); });
    });
  }

  /// With the state as it was when this was made.
  void begin(Beginning beginning) {
    known_ = std::move(beginning.known);
    stream_->send(beginning.subscribed);
    stream_->send(event_of({{"type", "HEARTBEAT"}}));
    const auto early = std::exchange(early_, std::nullopt);
    for (const auto& handler : *early) handler();
  }
  const std::shared_ptr<Stream>& stream() const { return stream_; }

 private:
  void send(const char* type, const char* field, json value) {
    stream_->send(event_of({{"type", type}, {field, std::move(value)}}));
  }

  /// Not before begin().
  void in_time(std::function<void()> handler) {
    if (early_)
      early_->push_back(std::move(handler));
    else
      handler();
  }

  void on_framework(const std::string& id, bool is_new) {
    if (const auto framework = framework_named(glance_at(services_, caller_), id))
      send(is_new ? "FRAMEWORK_ADDED" : "FRAMEWORK_UPDATED", is_new ? "framework_added" : "framework_updated",
           {{"framework", v1_framework(*framework)}});
  }

  void on_notice(const control::Notice& notice) {
    if (const auto* moved = std::get_if<control::notice::TaskMoved>(&notice)) return on_task(moved->record);
    const auto* removed = std::get_if<control::notice::FrameworkRemoved>(&notice);
    if (removed == nullptr) return;
    if (const auto framework = framework_named(glance_at(services_, caller_), removed->framework))
      send("FRAMEWORK_REMOVED", "framework_removed",
           {{"framework_info", v1_framework(*framework)["framework_info"]}});
  }

  void on_task(const TaskRecord& record) {
    if (is_executor(record)) return;
    const auto glance = glance_at(services_, caller_);
    const auto framework = framework_of(glance, record);
    if (!framework) return;
    auto task = v1_task(glance, *framework, record);
    const bool is_new = known_.insert(record.task.id).second;
    if (control::is_final(record.state)) known_.erase(record.task.id);
    if (is_new) return send("TASK_ADDED", "task_added", {{"task", std::move(task)}});
    const auto& statuses = task["statuses"];
    json status = {{"task_id", task["task_id"]},
                   {"state", task["state"]},
                   {"timestamp", seconds_of(services_.daemon->now())}};
    if (!statuses.empty() && statuses.back()["state"] == task["state"]) status = statuses.back();
    status["agent_id"] = task["agent_id"];
    send("TASK_UPDATED", "task_updated",
         {{"framework_id", task["framework_id"]}, {"status", std::move(status)}, {"state", task["state"]}});
  }

  const Services& services_;
  engine::Caller caller_;
  std::shared_ptr<Stream> stream_;
  std::optional<std::vector<std::function<void()>>> early_{std::in_place};  ///< what came before begin()
  std::set<std::string> known_;  ///< the tasks that it knows and that have not ended, by Drover's ids
  std::shared_ptr<void> watch_;
  std::shared_ptr<void> framework_watch_;
};

}  // namespace

asio::awaitable<Result<Response>> subscribe_operator(const Services& services, const engine::Caller& caller,
                                                     MediaType type) {
  auto watcher = std::make_shared<Watcher>(services, caller, type, co_await boost::asio::this_coro::executor);
  const auto read = [snapshot = snapshot_of(services, caller)] { return beginning_of(snapshot); };
  DROVER_CO_TRY(auto beginning, co_await on_pool(services.workers->lists, caller.user.uid, read));
  watcher->begin(std::move(beginning));
  auto stream = watcher->stream();
  auto response = follow(std::move(stream), [watcher = std::move(watcher)] {});
  response.read_only = true;
  co_return response;
}

}  // namespace drover::api::mesos
