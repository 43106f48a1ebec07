#pragma once

// Drover's own definitions as a file has them: tasks, gangs, queues and quotas. They are the bodies that the
// API takes, in which memory may be called `mem` as in all other files, and paths are meant from where the
// file lies. Pure.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/result.h"

namespace drover::cli {

struct NativeFile {
  nlohmann::json body;          ///< as the API has it
  std::string name;             ///< of a queue its path, of a quota whose it is: "user:ann"
  std::vector<Error> mistakes;  ///< their paths are those of the file
};

/// A task or a gang. `value` is an object, and says no `kind` any more. `folder`: the file's, as an absolute
/// path.
NativeFile read_task_file(const nlohmann::json& value, const std::string& folder);
/// By itself: whether the guarantees of queues fit together, the daemon knows. Every default is written out.
NativeFile read_queue_file(const nlohmann::json& value);
NativeFile read_quota_file(const nlohmann::json& value);

}  // namespace drover::cli
