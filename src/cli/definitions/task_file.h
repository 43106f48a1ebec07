#pragma once

// A task or a gang as a file has it: the body of a submission (workload/task.h), in which memory may be
// called `mem` as in all other files, and paths are meant from where the file lies. Pure.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/result.h"

namespace drover::cli {

struct TaskFile {
  nlohmann::json body;  ///< as the API has it
  std::string name;
  std::vector<Error> mistakes;  ///< their paths are those of the file
};

/// `value` is an object, and says no `kind` any more. `folder`: the file's, as an absolute path.
TaskFile read_task_file(const nlohmann::json& value, const std::string& folder);

}  // namespace drover::cli
