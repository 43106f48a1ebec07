#pragma once

// What happens to the state machine: requests of people, news of containers and of the machine, and time.
// Values.

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "control/executor_record.h"
#include "control/framework_record.h"
#include "control/health.h"
#include "control/image_fit.h"
#include "control/record.h"
#include "control/service_record.h"
#include "placement/node.h"
#include "placement/queues.h"
#include "workload/ending.h"
#include "workload/schedule.h"
#include "workload/service.h"

namespace drover::control {

namespace event {
struct Submitted {
  /// One, a gang by rank, or an array by index; complete: id, user, owner, gang and array are set.
  std::vector<workload::Task> tasks;
};
struct StopRequested {
  std::string id;  ///< of a task, of a gang or of an array
  bool force = false;
  bool operator==(const StopRequested&) const = default;
};
/// A task that runs is to have another share of the GPUs that it has.
struct ResizeRequested {
  std::string id;
  workload::Share share;
};
/// A task is ended because of what it takes up of the disk.
struct Overdrawn {
  std::string id;
  std::string why;  ///< "…": goes on after "killed because"
};
/// The GPUs of a task, or of its whole gang, did nothing for as long as it may.
struct Idled {
  std::string id;
};
/// A task is ended because it holds more of a shared GPU than it was given.
struct Overran {
  std::string id;
  std::string why;  ///< "…": goes on after "killed because"
};
/// Where others place (State::placed_by_others): the task has a node, and these GPUs of it.
struct Placed {
  std::string id;
  std::string node;
  std::vector<placement::Grant> gpus;
  std::optional<int> attempt = std::nullopt;
};
/// Why it has none yet, or has not started there, as the same say it. Nobody keeps it.
struct Waits {
  std::string id;
  std::string why;
};
/// The same who place it take its place away. It waits again, and its gang with it.
struct Evicted {
  std::string id;
  std::string why;
  std::optional<int> attempt = std::nullopt;
};
/// News of a container say which attempt at the task they are of, where that is known: what is told late or
/// twice must not be taken for news of a later one.
struct Started {
  std::string id;
  TimePoint at{};
  std::optional<int> attempt = std::nullopt;
  std::string containerizer;            ///< that started it; "" when it is not known
  std::string address = {};             ///< of its own; "": the machine's
  std::string tier = {};                ///< of its shares of GPUs; "": nothing holds it to them
  std::vector<std::string> parts = {};  ///< UUIDs of its MIG instances, in the order of its GPUs
};
struct Ended {
  std::string id;
  workload::Ending ending;
  std::optional<int> attempt = std::nullopt;
  std::optional<workload::Use> use = std::nullopt;  ///< of its machine, with all attempts before
};
struct LaunchFailed {
  std::string id;
  Error error;
  std::optional<int> attempt = std::nullopt;
};
/// Its launch was given up before anything of it ran, since one of its GPUs cannot be given now: it waits
/// again, and so does its gang. One that does not start again by itself has failed.
struct PutBack {
  std::string id;
  Error error;
  std::optional<int> attempt = std::nullopt;
};
/// After a restart: the engine found that the task had never been started.
struct NeverStarted {
  std::string id;
};
/// After a restart: the task is alive (or its end is about to be told).
struct StillAlive {
  std::string id;
};
/// After a restart: tasks that run, of which the journal does not know, or not where. Each as it was when it
/// was started.
struct Adopted {
  std::vector<TaskRecord> records;
};
struct RemoveRequested {
  std::string id;
};
/// The ports that programs of others have taken are not of it.
struct NodeChanged {
  placement::Node node;
};
/// Where others place: the nodes that there are now, all of them.
struct NodesChanged {
  std::shared_ptr<const std::vector<placement::Node>> nodes;
};
/// On which ports of the machine programs listen that are none of our tasks.
struct ForeignPortsSeen {
  std::set<int> ports;
};
/// New rules in place of the old ones. Refused when they are wrong, or lack a queue that has work.
struct RulesChanged {
  placement::Rules rules;
};
struct Tick {};
/// Something that people are to hear of and that changes nothing.
struct Noted {
  std::string kind;     ///< workload/event_kinds.h
  std::string task;     ///< its id; "": it concerns the machine
  std::string message;  ///< of a task: goes on behind its name
};

/// New definitions of services, all or nothing. They become one deployment, whose id is what is made.
struct ServicesChanged {
  std::vector<workload::Service> put;                        ///< complete but for version and the two times
  std::vector<std::string> removed;                          ///< ids of services that there are
  std::map<std::string, std::optional<GroupRecord>> groups;  ///< without version; none: it is forgotten
  bool restart = false;  ///< of what is put, every instance makes way for a new one whatever has changed
  bool force = false;    ///< deployments under way that touch one of the services are given up
  uid_t owner = 0;       ///< who changes them
};
/// Ends instances of services. They are replaced; with `scale` the services shrink by them, as one
/// deployment, whose id is what is made.
struct InstancesKilled {
  std::vector<std::string> ids;  ///< of tasks
  bool scale = false;
  bool force = false;
  uid_t owner = 0;
};
/// Gives a deployment up. With `revert` its services become what they were before, as another deployment,
/// whose id is what is made.
struct DeploymentCancelled {
  std::string id;
  bool revert = true;
  uid_t owner = 0;
};
/// A service that waits after failures may start again at once.
struct DelayReset {
  std::string service;
};
/// What was found of images; none: each stands for a single one.
struct ImagesKnown {
  std::map<ImageName, std::optional<ImageFit>> images;
};
struct Checked {
  CheckResult result;
};
/// A framework came, or came back; what it made is its id.
struct FrameworkSubscribed {
  std::string id;
  FrameworkRecord record;
};
struct FrameworkDisconnected {
  std::string id;
  /// It may be away so long, or its failover timeout if that is longer.
  std::chrono::milliseconds patience{0};
};
/// All its tasks end.
struct FrameworkTornDown {
  std::string id;
};
/// One task, or the members of a group.
struct FrameworkLaunched {
  std::vector<FrameworkLaunch> launches;
};
struct UpdateAcknowledged {
  std::string framework;
  std::string task_id;
  std::string uuid;
};

/// Of an executor that does not run yet: its container is submitted.
struct ExecutorLaunched {
  ExecutorLaunch launch;
};
/// It came, or came again, with what it has not seen acknowledged.
struct ExecutorSubscribed {
  std::string framework;
  std::string executor_id;
  std::vector<ExecutorUpdate> updates;
  std::string host = {};  ///< as ExecutorRecord
};
struct ExecutorUpdated {
  std::string framework;
  std::string executor_id;
  ExecutorUpdate update;
  std::string host = {};  ///< as ExecutorRecord
};
/// Its connection ended; after a restart those of all have.
struct ExecutorDisconnected {
  std::string framework;
  std::string executor_id;
  std::string host = {};  ///< as ExecutorRecord
};
/// Of a task that an executor runs.
struct ExecutorTaskKilled {
  std::string framework;
  std::string task_id;
  std::optional<std::chrono::milliseconds> grace = std::nullopt;
};

/// A schedule that is new, or has a new definition; its task is complete but for id and origin.
struct ScheduleDefined {
  workload::Schedule schedule;
};
struct ScheduleRemoved {
  std::string name;
};
/// One run now, with these words after its command.
struct ScheduleRunRequested {
  std::string name;
  std::string arguments;
};
struct ScheduleKilled {
  std::string name;
};
/// Somebody says that it has succeeded.
struct ScheduleMarked {
  std::string name;
};
/// A run tells how much it has processed.
struct ScheduleProgressed {
  std::string name;
  std::string run;  ///< its origin_id
  std::int64_t elements = 0;
};
}  // namespace event

using Event =
    std::variant<event::Submitted, event::StopRequested, event::ResizeRequested, event::Overdrawn,
                 event::Idled, event::Overran, event::Placed, event::Waits, event::Evicted, event::Started,
                 event::Ended, event::LaunchFailed, event::PutBack, event::NeverStarted, event::StillAlive,
                 event::Adopted, event::RemoveRequested, event::NodeChanged, event::NodesChanged,
                 event::ForeignPortsSeen, event::RulesChanged, event::Tick, event::Noted,
                 event::ServicesChanged, event::InstancesKilled, event::DeploymentCancelled,
                 event::DelayReset, event::ImagesKnown, event::Checked, event::FrameworkSubscribed,
                 event::FrameworkDisconnected, event::FrameworkTornDown, event::FrameworkLaunched,
                 event::UpdateAcknowledged, event::ExecutorLaunched, event::ExecutorSubscribed,
                 event::ExecutorUpdated, event::ExecutorDisconnected, event::ExecutorTaskKilled,
                 event::ScheduleDefined, event::ScheduleRemoved, event::ScheduleRunRequested,
                 event::ScheduleKilled, event::ScheduleMarked, event::ScheduleProgressed>;

}  // namespace drover::control
