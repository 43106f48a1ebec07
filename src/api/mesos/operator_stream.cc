#include "api/mesos/operator_stream.h"

#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "api/mesos/executor_tasks.h"
#include "api/mesos/operator_protocol.h"
#include "api/mesos/protobuf_json.h"
#include "api/mesos/stream.h"
#include "api/mesos/v1_views.h"
#include "api/mesos/values.h"

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

/// One subscriber. Hears of changes as long as it lives.
class Watcher {
 public:
  Watcher(const Services& services, engine::Caller caller, MediaType type,
          const boost::asio::any_io_executor& executor)
      : services_(services),
        caller_(std::move(caller)),
        stream_(std::make_shared<Stream>(executor, type, event_of({{"type", "HEARTBEAT"}}))) {
    stream_->send(event_of({{"type", "SUBSCRIBED"},
                            {"subscribed",
                             {{"get_state", v1_state(services_, caller_)},
                              {"heartbeat_interval_seconds", kHeartbeat.count()}}}}));
    stream_->send(event_of({{"type", "HEARTBEAT"}}));
    for (const auto& framework : frameworks_for(services_, caller_, false))
      for (const auto* task : framework.tasks)
        if (!control::is_final(task->state)) told_.insert(task->task.id);
    watch_ = services_.daemon->watch([this](const control::Notice& notice) { hear(notice); });
    framework_watch_ = services_.mesos->watch_frameworks([this](const std::string& id, const bool& is_new) {
      if (const auto framework = framework_named(services_, caller_, id))
        tell(is_new ? "FRAMEWORK_ADDED" : "FRAMEWORK_UPDATED",
             is_new ? "framework_added" : "framework_updated", {{"framework", v1_framework(*framework)}});
    });
  }

  const std::shared_ptr<Stream>& stream() const { return stream_; }

 private:
  void tell(const char* type, const char* field, json value) {
    stream_->send(event_of({{"type", type}, {field, std::move(value)}}));
  }

  void hear(const control::Notice& notice) {
    if (const auto* moved = std::get_if<control::notice::TaskMoved>(&notice)) return hear_of(moved->record);
    const auto* removed = std::get_if<control::notice::FrameworkRemoved>(&notice);
    if (removed == nullptr) return;
    if (const auto framework = framework_named(services_, caller_, removed->framework))
      tell("FRAMEWORK_REMOVED", "framework_removed",
           {{"framework_info", v1_framework(*framework)["framework_info"]}});
  }

  void hear_of(const TaskRecord& record) {
    if (is_executor(record)) return;
    const auto framework = framework_of(services_, caller_, record);
    if (!framework) return;
    auto task = v1_task(services_, *framework, record);
    const bool is_new = told_.insert(record.task.id).second;
    if (control::is_final(record.state)) told_.erase(record.task.id);
    if (is_new) return tell("TASK_ADDED", "task_added", {{"task", std::move(task)}});
    const auto& statuses = task["statuses"];
    json status = {{"task_id", task["task_id"]},
                   {"state", task["state"]},
                   {"timestamp", seconds_of(services_.daemon->now())}};
    if (!statuses.empty() && statuses.back()["state"] == task["state"]) status = statuses.back();
    status["agent_id"] = task["agent_id"];
    tell("TASK_UPDATED", "task_updated",
         {{"framework_id", task["framework_id"]}, {"status", std::move(status)}, {"state", task["state"]}});
  }

  const Services& services_;
  engine::Caller caller_;
  std::shared_ptr<Stream> stream_;
  std::set<std::string> told_;  ///< the tasks that it knows and that have not ended, by Drover's ids
  std::shared_ptr<void> watch_;
  std::shared_ptr<void> framework_watch_;
};

}  // namespace

Response subscribe_operator(const Services& services, const engine::Caller& caller, MediaType type,
                            const boost::asio::any_io_executor& executor) {
  auto watcher = std::make_shared<Watcher>(services, caller, type, executor);
  auto stream = watcher->stream();
  auto response = follow(std::move(stream), [watcher = std::move(watcher)] {});
  response.read_only = true;
  return response;
}

}  // namespace drover::api::mesos
