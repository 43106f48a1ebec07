#pragma once

// The shim's launch specification: all that it must know to run one task, written by the daemon as
// launch.json. The two may be of different versions only for as long as a task lives: a shim reads the one
// that its own daemon wrote. Values and their JSON form; no I/O.

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/decode.h"
#include "base/result.h"
#include "base/users.h"
#include "container/bind_plan.h"
#include "container/device_plan.h"
#include "container/id_map.h"
#include "container/network/network_plan.h"
#include "container/volume_plan.h"
#include "workload/task.h"

namespace drover::container {

/// What the task's root file system is made of.
struct RootPlan {
  std::vector<std::string> layers;  ///< absolute, lowest first; empty: a private copy of the host's mounts
  bool read_only = false;
  std::vector<std::string> hidden;  ///< host root only: folders and files that are covered
  std::string label;                ///< image only: SELinux label of all its files; "": their own

  bool operator==(const RootPlan&) const = default;
};

/// How much of its output a task may keep: `files` files of `file_bytes` each, for stdout and for stderr.
struct LogLimits {
  std::uint64_t file_bytes = 10ULL << 20;
  int files = 3;

  bool operator==(const LogLimits&) const = default;
};

/// A container that a Docker Engine makes.
struct DockerSpec {
  std::string socket;
  std::string api_version;                      ///< to speak with the engine there
  std::string body;                             ///< of POST /containers/create
  std::chrono::milliseconds patience{300'000};  ///< with an engine that does not answer, while the task runs

  bool operator==(const DockerSpec&) const = default;
};

struct LaunchSpec {
  std::string task_id;
  int attempt = 0;      ///< the marker of this one must not be there yet
  std::string runtime;  ///< path of the OCI runtime; "" with `docker`
  std::optional<DockerSpec> docker;
  std::string cgroup;  ///< "/drover/<id>"
  uid_t uid = 0;       ///< whom the log files belong to
  gid_t gid = 0;
  std::chrono::milliseconds grace{10'000};          ///< between SIGTERM and SIGKILL
  std::chrono::milliseconds start_timeout{60'000};  ///< for the runtime to start the container
  std::string mounts;  ///< a folder over which the shim mounts what its runtime finds: see root_mount.h
  RootPlan root;
  std::string working_directory;  ///< in the container
  bool takes_input = false;       ///< of people: see task_input.h
  std::optional<workload::Terminal> terminal;
  std::string command;  ///< its first word
  IdMap ids;            ///< none with `docker`: that is for its engine to do
  std::vector<BindPlan> binds;
  std::vector<DevicePlan> devices;
  LogLimits logs;
  std::vector<VolumePlan> volumes;
  User volume_user;                    ///< with whose rights they are opened: uid, gid and groups
  std::optional<NetworkPlan> network;  ///< none: the machine's own

  bool operator==(const LaunchSpec&) const = default;
};

/// decode_launch_spec(encode(spec)) == spec.
std::string encode(const LaunchSpec& spec);
Result<LaunchSpec> decode_launch_spec(std::string_view text);

/// The form of users in this specification and in others. One without ids is read as nobody that there is.
nlohmann::json encode_user(const User& user);
User read_user(Decoder decoder);

}  // namespace drover::container
