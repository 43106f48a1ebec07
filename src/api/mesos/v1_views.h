#pragma once

// What operators are told by the v1 API. Of what there are thousands, the messages are filled; of the rest
// they are read from the views of views.h, whose fields beyond those that a message has are ignored. Pure.

#include <nlohmann/json_fwd.hpp>

#include "api/mesos/seen_frameworks.h"

namespace google::protobuf {
class Message;
}
namespace mesos::v1 {
class Task;
}

namespace drover::api::mesos {

/// Fills an empty message.
void put_task(const Snapshot& snapshot, const SeenFramework& framework, const control::TaskRecord& record,
              ::mesos::v1::Task& message);
/// All but its tasks.
nlohmann::json v1_framework(const SeenFramework& framework);

/// One answer of a master or of an agent: adds to the message of that answer. Of thousands of tasks no other
/// form is made than that.
using V1View = Status (*)(const Snapshot& snapshot, google::protobuf::Message& answer);

// Of both
Status v1_health(const Snapshot& snapshot, google::protobuf::Message& answer);
Status v1_flags(const Snapshot& snapshot, google::protobuf::Message& answer);
Status v1_version(const Snapshot& snapshot, google::protobuf::Message& answer);
Status v1_metrics(const Snapshot& snapshot, google::protobuf::Message& answer);
Status v1_logging_level(const Snapshot& snapshot, google::protobuf::Message& answer);
Status v1_frameworks(const Snapshot& snapshot, google::protobuf::Message& answer);
Status v1_executors(const Snapshot& snapshot, google::protobuf::Message& answer);
/// There are none: operations, weights, resource providers.
Status v1_nothing(const Snapshot& snapshot, google::protobuf::Message& answer);

// Of the master
Status v1_state(const Snapshot& snapshot, google::protobuf::Message& answer);
Status v1_tasks(const Snapshot& snapshot, google::protobuf::Message& answer);
Status v1_agents(const Snapshot& snapshot, google::protobuf::Message& answer);
Status v1_roles(const Snapshot& snapshot, google::protobuf::Message& answer);
Status v1_master(const Snapshot& snapshot, google::protobuf::Message& answer);
/// Of quotas and of maintenance, of which there is none.
Status v1_no_status(const Snapshot& snapshot, google::protobuf::Message& answer);
Status v1_no_schedule(const Snapshot& snapshot, google::protobuf::Message& answer);

// Of the agent
Status v1_agent_state(const Snapshot& snapshot, google::protobuf::Message& answer);
Status v1_agent_tasks(const Snapshot& snapshot, google::protobuf::Message& answer);
Status v1_agent(const Snapshot& snapshot, google::protobuf::Message& answer);
Status v1_containers(const Snapshot& snapshot, google::protobuf::Message& answer);

}  // namespace drover::api::mesos
