#include "control/group_name.h"

#include <fmt/format.h>

namespace drover::control {

std::string group_of(const workload::Task& task) {
  const auto& name = task.resources.group;
  return name.empty() ? "" : fmt::format("{}/{}", task.owner, name);
}

std::string mps_group_of(const workload::Task& task) {
  return task.resources.by_mps() ? fmt::format("group-{}-{}", task.owner, task.resources.group) : "";
}

}  // namespace drover::control
