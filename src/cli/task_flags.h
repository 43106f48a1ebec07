#pragma once

// The flags that say what is to run and what it needs, and the request that they make (api: POST /v1/tasks).
// `drover run` and `drover plan` share them, so that the one tells the truth about the other. Pure but for
// this process's environment and working directory.

#include <CLI/App.hpp>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/attachment_flags.h"

namespace drover::cli {

/// As they were written; empty: not given.
struct TaskFlags {
  std::string image, pull, driver, containerizer, user, working_directory, name, timeout, idle_timeout,
      pull_timeout, grace;
  std::vector<std::string> environment_files;
  std::vector<std::string> environment;  ///< goes before them
  std::vector<std::string> labels;
  bool read_only = false;
  bool privileged = false;
  AttachmentFlags attachments;

  std::string gpus, cpus, memory, processes;
  std::string gpu_memory, gpu_compute_capability, gpu_ecc, gpu_driver, gpu_share, share_by, gpu_part;
  std::string interconnect;
  std::vector<std::string> gpu_models;
  bool different_gpus = false;
  std::string cpu_affinity, nic, group;
  std::vector<std::string> constraints;
  std::string gang, arrangement, queue, name_space, priority;
};

/// An image as the daemon is told of it, which has another working directory: it gets paths in full.
std::string absolute_image(const std::string& reference);

void add_task_flags(CLI::App& command, TaskFlags& flags);

/// The body of the request that runs `command`. What only the daemon can judge is left to
/// it; an error names the flag.
Result<nlohmann::json> task_request(const TaskFlags& flags, const std::vector<std::string>& command);

/// What `--gpu-share` says, as the API takes it.
nlohmann::json share_of_flag(const std::string& text);

/// Variables that are to be passed on and are not set here: the task does not get them.
std::vector<std::string> unset_variables(const TaskFlags& flags);

/// The daemon's refusal of such a request, with the names of flags in place of those of fields.
Error in_flags(Error error);

}  // namespace drover::cli
