#pragma once

// What people ask for: one task. Types, defaults and validation only; no I/O.

#include <chrono>
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/pull_policy.h"
#include "base/result.h"
#include "base/shared.h"
#include "base/users.h"
#include "workload/batch.h"
#include "workload/network.h"
#include "workload/origin.h"
#include "workload/resources.h"

namespace drover::workload {

/// What makes a task a member of a gang: all its members start together or not at all, and end together.
struct GangMembership {
  std::string id;  ///< made by the daemon; the members' own ids are "<id>-<rank>"
  int rank = 0;    ///< 0 … size - 1
  int size = 1;
  Arrangement arrangement = Arrangement::kPack;

  bool operator==(const GangMembership&) const = default;
};

/// A file that is brought into the sandbox before the task starts.
struct Fetch {
  std::string uri;          ///< http, https or file; or an absolute path on the machine
  bool extract = true;      ///< what is an archive is unpacked; the archive stays beside it
  bool executable = false;  ///< never unpacked then
  bool cache = false;       ///< what was fetched before may be used again
  std::string output_file;  ///< where in the sandbox: a relative path; "": the last part of the URI's path

  bool operator==(const Fetch&) const = default;
};

/// A folder or file of the host in the container.
struct Volume {
  std::string container_path;  ///< absolute, or relative to the sandbox
  std::string host_path;       ///< absolute; the task's user must be able to reach it on the host
  bool read_only = false;

  bool operator==(const Volume&) const = default;
};

/// Which containerizer is asked for, as Mesos and Marathon spell it.
enum class ContainerType {
  kAny,
  kMesos,   ///< the daemon's own, by an OCI runtime
  kDocker,  ///< a Docker Engine, where the daemon has one
};

/// The queue of those who name none.
inline constexpr const char* kDefaultQueue = "default";

/// As many process ids as a kernel ever has.
inline constexpr int kMaxProcesses = 1 << 22;

inline constexpr int kMinPriority = -1000;
inline constexpr int kMaxPriority = 1000;

/// How much a task may use at most, where that is not as much as it was given: more, when the machine has it
/// to spare. Nothing of it is promised, placed or counted. 0: as much as there is.
struct Limits {
  std::optional<std::int64_t> milli_cpus;
  std::optional<std::uint64_t> memory_bytes;

  bool operator==(const Limits&) const = default;
};

/// A pseudo terminal, and how large it is at the start.
struct Terminal {
  int rows = 24;
  int columns = 80;

  bool operator==(const Terminal&) const = default;
};

inline constexpr int kMaxTerminalSide = 10'000;

/// Whose user-land driver a container with GPUs uses.
enum class DriverSource {
  kHost,  ///< the machine's own is brought in
  kNone,  ///< the image's: nothing is added to its file system
};

struct Task {
  std::string id;                            ///< unique for ever; made by the daemon
  std::string name;                          ///< for people; defaults to the first word of the command
  Shared<std::vector<std::string>> command;  ///< argument vector; empty: what the image says
  bool bypass_entrypoint = false;    ///< the command is all that runs; else it follows the image's entrypoint
  std::optional<std::string> image;  ///< reference (docs/images.md); none: the host's own root
  PullPolicy pull = PullPolicy::kMissing;  ///< of an image that is named as registries have it
  Shared<std::map<std::string, std::string>> environment;
  std::string working_directory;     ///< "": the image's, or the sandbox
  User user;                         ///< whom it runs as
  uid_t owner = 0;                   ///< who asked for it
  std::string owner_name;            ///< by whom quotas and queues count it
  bool read_only = false;            ///< root file system
  bool takes_input = false;          ///< people may write to its standard input; else that is empty
  std::optional<Terminal> terminal;  ///< its standard streams are one, and take input
  ContainerType container_type = ContainerType::kAny;
  bool privileged = false;  ///< sees every device of the machine, not only its own GPUs
  DriverSource driver = DriverSource::kHost;
  std::optional<int> processes;  ///< it has at most so many; none: as many as the daemon gives
  Resources resources{.milli_cpus = 1000, .memory_bytes = 1ULL << 30};
  Limits limits;
  std::string queue = kDefaultQueue;  ///< path: "research/vision"
  std::string name_space;             ///< "namespace" outside of C++; "" for none
  int priority = 0;                   ///< kMinPriority … kMaxPriority; higher goes first
  std::optional<GangMembership> gang;
  Batch batch;
  std::optional<std::chrono::milliseconds> timeout;       ///< then it is stopped
  std::optional<std::chrono::milliseconds> pull_timeout;  ///< its image is there by then, or it fails
  std::chrono::milliseconds grace{10'000};                ///< between SIGTERM and SIGKILL
  Shared<std::map<std::string, std::string>> labels;
  Shared<std::vector<Fetch>> fetch;
  Shared<std::vector<Volume>> volumes;
  std::vector<std::string> devices;  ///< of other vendors, as CDI calls them: "vendor.com/class=name"
  Network network;
  Origin origin;  ///< what it was made for; made by the daemon

  std::int64_t most_milli_cpus() const { return limits.milli_cpus.value_or(resources.milli_cpus); }
  std::uint64_t most_memory_bytes() const { return limits.memory_bytes.value_or(resources.memory_bytes); }
  /// Whether it may use more than it was given.
  bool may_exceed_cpus() const {
    return limits.milli_cpus && (*limits.milli_cpus == 0 || *limits.milli_cpus > resources.milli_cpus);
  }
  bool may_exceed_memory() const {
    return limits.memory_bytes &&
           (*limits.memory_bytes == 0 || *limits.memory_bytes > resources.memory_bytes);
  }

  bool operator==(const Task&) const = default;
};

/// Reads a request for one task: name, command, image, pull, env, working_directory, read_only, stdin, tty,
/// container_type, privileged, driver, queue, namespace, priority, timeout, pull_timeout, grace, labels, what
/// it needs (resource_fields.h), what is brought to it (attachment_fields.h), when it starts and what becomes
/// of it (batch.h), and `user` (a name, returned apart because only the caller's rights say whether it may be
/// used). All mistakes at once. The id, user and owner are left empty.
struct TaskRequest {
  Task task;
  std::optional<std::string> user;
  std::optional<User> found_user;  ///< who that is, once he was looked up
  bool says_cpus = true;           ///< else they are to go with its GPUs (control/gpu_share.h)
  bool says_memory = true;         ///< the same
  std::optional<std::chrono::milliseconds> begin_in;  ///< not before so long after its acceptance
};
Result<TaskRequest> decode_task_request(const nlohmann::json& body);

/// Several tasks at once or none. One member alone is a gang too: it is told its rank.
struct GangRequest {
  std::vector<TaskRequest> members;  ///< by rank; not empty; `gang` of their tasks is left empty
  Arrangement arrangement = Arrangement::kPack;
};

inline constexpr int kMaxGang = 1024;                        ///< members
inline constexpr std::uint64_t kMaxGangBytes = 16ULL << 20;  ///< of the definitions of all members

/// Many tasks that are alike, each with a number of its own.
struct ArrayRequest {
  TaskRequest task;  ///< `batch.array` is left empty
  ArrayIndices array;
};

/// The body of a submission (api: POST /v1/tasks). A gang has all the fields of a task for its members, and
/// "gang": {"size": 4} or {"members": [{"gpus": 2}, …]} with what is different for each, and "arrangement":
/// "pack", "spread" or "any". An array has all the fields of a task, and "array": "0-99%10".
using Submission = std::variant<TaskRequest, GangRequest, ArrayRequest>;
Result<Submission> decode_submission(const nlohmann::json& body);

/// A plain name that leads nowhere else in a path: not "." or "..".
bool is_queue_name(std::string_view text);
/// "research/vision": 1 to 8 levels of such names.
bool is_queue_path(std::string_view text);

/// A task as stored in the journal and as shown by the API (task_writer.h writes it as text);
/// decode_task(encode(task)) == task.
nlohmann::json encode(const Task& task);
Result<Task> decode_task(const nlohmann::json& value);

/// A task's template: what the members of a gang, and the instances of a service, have in common, and what
/// may be large. Calls visit(command of each given task …), and so on for each part of it.
template <typename Visit, typename... T>
void each_template_part(Visit visit, T&&... tasks) {
  visit(tasks.command...);
  visit(tasks.environment...);
  visit(tasks.labels...);
  visit(tasks.fetch...);
  visit(tasks.volumes...);
}
/// Gives `task` the template of `from`, which both share from then on.
void take_template(Task& task, const Task& from);
/// Lets `task` share the parts of its template that are equal to those of `with`.
void share_equal_parts(Task& task, const Task& with);
/// Whether both templates are one in memory.
bool shares_template(const Task& one, const Task& other);
/// A task that has nothing but the template that template_text() wrote (task_writer.h).
Result<Task> decode_template(const nlohmann::json& value);

}  // namespace drover::workload
