#pragma once

// What people ask for: one task. Types, defaults and validation only; no I/O.

#include <chrono>
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/users.h"

namespace drover::workload {

struct Resources {
  int gpus = 0;                    ///< whole GPUs
  std::int64_t milli_cpus = 1000;  ///< thousandths of a CPU; also the weight under contention
  std::uint64_t memory_bytes = 1ULL << 30;

  bool operator==(const Resources&) const = default;
};

struct Task {
  std::string id;                    ///< unique for ever; made by the daemon
  std::string name;                  ///< for people; defaults to the first word of the command
  std::vector<std::string> command;  ///< argument vector; empty: what the image says
  std::optional<std::string> image;  ///< reference (docs/images.md); none: the host's own root
  std::map<std::string, std::string> environment;
  std::string working_directory;  ///< "": the image's, or the sandbox
  User user;                      ///< whom it runs as
  uid_t owner = 0;                ///< who asked for it
  bool read_only = false;         ///< root file system
  Resources resources;
  std::optional<std::chrono::milliseconds> timeout;  ///< then it is stopped
  std::chrono::milliseconds grace{10'000};           ///< between SIGTERM and SIGKILL
  std::map<std::string, std::string> labels;

  bool operator==(const Task&) const = default;
};

/// Reads the body of a submission (api: POST /v1/tasks): name, command, image, env, working_directory,
/// read_only, gpus, cpus, memory (size or bytes), timeout, grace, labels, and `user` (a name, returned apart
/// because only the caller's rights say whether it may be used). All mistakes at once. The id, user and owner
/// are left empty.
struct TaskRequest {
  Task task;
  std::optional<std::string> user;
};
Result<TaskRequest> decode_task_request(const nlohmann::json& body);

/// A task as stored in the journal and as shown by the API; decode_task(encode(task)) == task.
nlohmann::json encode(const Task& task);
Result<Task> decode_task(const nlohmann::json& value);

}  // namespace drover::workload
