#pragma once

// A task's life, as the journal keeps it and as the API shows it. Values only; no I/O.

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "placement/decision.h"
#include "workload/task.h"
#include "workload/use.h"

namespace drover {
class JsonWriter;
}

namespace drover::control {

enum class TaskState {
  kQueued,    ///< accepted, waits for its resources
  kStarting,  ///< owns its GPUs; the container is being made
  kRunning,
  kStopping,  ///< somebody asked it to end, or its time is up
  kFinished,  ///< exit status 0
  kFailed,    ///< another exit status, out of memory, timed out, or it could not be started
  kKilled,    ///< stopped on request
  kLost,      ///< it was running and nobody can say how it ended
};
std::string_view to_string(TaskState state);
/// "TASK_STAGING", "TASK_RUNNING" …: as those know it who come from Mesos and Marathon.
std::string_view mesos_state(TaskState state);
// What else those know: the frameworks that stand for services and for schedules. `id` is that of the
// journal.
inline std::string marathon_id(const std::string& id) {
  return id + "-marathon";
}
inline std::string chronos_id(const std::string& id) {
  return id + "-chronos";
}
Result<TaskState> parse_task_state(std::string_view text);
constexpr bool is_final(TaskState state) {
  return state >= TaskState::kFinished;
}
/// Whether a task in this state owns the GPUs in its record (ownership is derived, never kept
/// apart).
constexpr bool owns_resources(TaskState state) {
  return state == TaskState::kStarting || state == TaskState::kRunning || state == TaskState::kStopping;
}

/// By what a task ended.
enum class Cause {
  kNone,         ///< by itself, with status 0; or it has not ended
  kExit,         ///< by itself, with another status
  kSignal,       ///< by a signal that nobody sent on request
  kOutOfMemory,  ///< of its own, or of the machine's
  kTimeLimit,
  kIdle,   ///< its GPUs did nothing
  kDisk,   ///< of which it took up too much
  kShare,  ///< of a GPU, of which it held more than that
  kUnhealthy,
  kStopped,     ///< on request
  kGang,        ///< of which another member ended
  kPreempted,   ///< and it was not to start again
  kDependency,  ///< it waited for what will not come
  kNotStarted,  ///< it could not be
  kLost,        ///< nobody can say
};
std::string_view to_string(Cause cause);

struct TaskRecord {
  workload::Task task;
  std::uint64_t sequence = 0;  ///< order of acceptance
  std::string template_key;    ///< under which the journal has the task's template; "": in the record itself
  TaskState state = TaskState::kQueued;
  // What it was given; kept after the end as history, empty while it waits.
  std::vector<placement::Grant> gpus;
  std::vector<int> cpus;          ///< those it is pinned to; empty: it floats
  std::vector<std::string> nics;  ///< near its GPUs, when it asked for one
  std::vector<int> ports;         ///< on the machine, by the ports of its network
  int gang_port = 0;              ///< where the members of its gang find the first one; 0 without a gang
  std::string node;               ///< where it is, when others place it; "": this machine, or nowhere yet
  int set = 0;                    ///< of its service's instances (node_rules.h); 0: it needs none
  std::string address;            ///< of its own, by which its ports are reached; "": the machine's
  std::string containerizer;      ///< that runs it, or did last: "oci", …; "" before it runs
  std::string tier;               ///< of what holds it to its shares of GPUs: "guarded"; "": nothing does
  /// It runs, and had so much of a GPU's memory before its share was made smaller; 0: it never had more.
  std::uint64_t shrunk_from = 0;
  std::string reason;          ///< why it waits, failed or was killed, in words; may be empty
  Cause cause = Cause::kNone;  ///< the same for programs, of one that has ended
  std::optional<int> exit_status;
  bool asked = false;  ///< it waits, and who places it was asked to: it may start at any time
  bool stop_requested = false;
  bool timed_out = false;
  bool idled = false;  ///< it is being ended since its GPUs did nothing
  /// It is being ended to make room; of a framework's task that is over: it has been.
  bool preempted = false;
  int preemptions = 0;       ///< how often it was started, ended so, and put back
  int failures = 0;          ///< how often it was started, failed or was lost, and put back
  bool tries_again = false;  ///< it is being ended to start again with its gang, of which a member failed
  std::string stop_reason;   ///< why it was asked to end, when that was not simply a request; in words
  std::string unhealthy;     ///< it is being ended because of its health, in words
  std::string overdrawn;     ///< it is being ended because of its files, in words
  std::string overran;       ///< it is being ended because of its share of a GPU, in words
  std::string gang_reason;   ///< it is being ended because of another member: "rank 2 exited with status 3"
  std::optional<workload::Use> use;  ///< of its machine, since an attempt at it has ended
  TimePoint submitted_at{};
  // What holds it back while it waits, until it is over:
  std::vector<workload::Dependency> awaits;  ///< those of task.batch.after that are still to come
  std::optional<TimePoint> not_before;       ///< task.batch.begin
  std::optional<TimePoint> retry_at;         ///< by the clock that nobody sets; after a failure
  std::optional<TimePoint> started_at;
  std::optional<TimePoint> finished_at;
  // The same two by the clock that nobody sets (Moment::steady): for what is due after some time.
  std::optional<TimePoint> steady_started_at;
  std::optional<TimePoint> steady_finished_at;
  /// By the same clock: since when it has what it has now; none while it waits.
  std::optional<TimePoint> steady_held_since;

  bool operator==(const TaskRecord&) const = default;
};

/// By the clock that nobody sets; records of older daemons do not have it.
inline std::optional<TimePoint> steady_start(const TaskRecord& record) {
  return record.steady_started_at ? record.steady_started_at : record.started_at;
}
inline std::optional<TimePoint> steady_end(const TaskRecord& record) {
  return record.steady_finished_at ? record.steady_finished_at : record.finished_at;
}

/// How often the task was started before: each attempt runs at most once.
inline int attempt_of(const TaskRecord& record) {
  return record.preemptions + record.failures;
}

/// Where others reach its ports: `machine` is the name of ours.
inline const std::string& host_of(const TaskRecord& record, const std::string& machine) {
  if (!record.address.empty()) return record.address;
  return record.node.empty() ? machine : record.node;
}

/// An address of its own, or that of our machine.
inline const std::string& address_of(const TaskRecord& record, const std::string& machine) {
  return record.address.empty() ? machine : record.address;
}

/// Whether something of it may be outside: what is told of the others is of no matter.
inline bool is_under_way(const TaskRecord& record) {
  return owns_resources(record.state) || record.asked;
}

/// Whether it may not even be planned, whatever is free.
inline bool is_held(const TaskRecord& record) {
  return !record.awaits.empty() || record.not_before || record.retry_at;
}

/// A framework is told that its task has ended, as Mesos tells it, and launches another one.
inline bool is_of_framework(const workload::Task& task) {
  return task.origin.kind == workload::OriginKind::kFramework;
}
/// Whether it waits again once it has made room for others.
inline bool restarts_after_preemption(const workload::Task& task) {
  return !is_of_framework(task) && task.batch.requeue != workload::Requeue::kNever;
}

/// UUIDs of its GPUs.
std::vector<std::string> uuids_of(const TaskRecord& record);

/// The only form in which a record is written: decode_record() reads it. Fields by name. "gpus" are the
/// UUIDs; "grants" say in addition how much of each. A record without "grants", as older daemons wrote it,
/// has whole GPUs. The tier of a grant is told, and never read: it is that of the record.
void write(JsonWriter& writer, const TaskRecord& record);
void write(JsonWriter& writer, const placement::MigGrant& mig);
void write(JsonWriter& writer, const std::vector<placement::Grant>& grants, std::string_view tier);
std::string text_of(const TaskRecord& record);
/// decode_record(encode(record)) == record
nlohmann::json encode(const TaskRecord& record);
Result<TaskRecord> decode_record(const nlohmann::json& value);

// What is large of a definition is kept once, however many members or instances there are, and is not written
// again with every state that they come to: `template_key` says where.

/// By key: tasks of which nothing but the template counts.
using Templates = std::map<std::string, workload::Task>;

/// The name of the task's template by its content; "" when it is so small that the record has it.
std::string template_key_of(const workload::Task& task);
/// As the journal keeps the record: without the template, when that has a key.
std::string kept_text_of(const TaskRecord& record);
Result<TaskRecord> decode_kept_record(const nlohmann::json& value, const Templates& templates);

}  // namespace drover::control
