#include "container/environment.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>

#include "container/own_places.h"
#include "driver/injection.h"
#include "share/mps_daemons.h"

namespace drover::container {
namespace {

using Variables = std::map<std::string, std::string>;

constexpr const char* kDefaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

Variables defaults(const User& user) {
  return {{"PATH", kDefaultPath}, {"HOME", user.home}, {"USER", user.name}, {"LOGNAME", user.name}};
}

Variables machine_variables(const Launch& launch) {
  Variables own;
  if (!launch.gpu_shares.empty()) {
    std::vector<std::string> shares, sizes;
    for (const auto& share : launch.gpu_shares) {
      shares.push_back(fmt::format("{:g}", share.milli / 1000.0));
      sizes.push_back(std::to_string(share.memory_bytes));
    }
    own["DROVER_GPU_SHARE"] = fmt::format("{}", fmt::join(shares, ","));
    own["DROVER_GPU_MEMORY"] = fmt::format("{}", fmt::join(sizes, ","));
  }
  if (!launch.nics.empty()) own["DROVER_NICS"] = fmt::format("{}", fmt::join(launch.nics, ","));
  if (launch.attempt > 0) own["DROVER_ATTEMPT"] = std::to_string(launch.attempt);
  if (launch.preemptions > 0) own["DROVER_PREEMPTIONS"] = std::to_string(launch.preemptions);
  if (const auto& array = launch.task.batch.array) {
    own["DROVER_ARRAY_ID"] = own["SLURM_ARRAY_JOB_ID"] = array->id;
    own["DROVER_ARRAY_INDEX"] = own["SLURM_ARRAY_TASK_ID"] = std::to_string(array->index);
    own["DROVER_ARRAY_SIZE"] = own["SLURM_ARRAY_TASK_COUNT"] = std::to_string(array->size);
  }
  if (launch.gang) {
    own["DROVER_GANG_ID"] = launch.gang->id;
    own["DROVER_GANG_HOSTS"] = fmt::format("{}", fmt::join(launch.gang->hosts, ","));
  }
  return own;
}

}  // namespace

/// What distributed programs look for: the names of torch.distributed, which most others follow. A member has
/// a container, and GPUs, of its own, so it counts as a node with one process: a program that takes the GPU
/// number LOCAL_RANK finds its own.
std::map<std::string, std::string> gang_environment(const GangPlace& gang) {
  const auto rank = std::to_string(gang.rank);
  return {{"RANK", rank},
          {"WORLD_SIZE", std::to_string(gang.hosts.size())},
          {"NODE_RANK", rank},
          {"LOCAL_RANK", "0"},
          {"LOCAL_WORLD_SIZE", "1"},
          {"MASTER_ADDR", gang.first_address},
          {"MASTER_PORT", std::to_string(gang.first_port)}};
}

std::string sandbox_inside(const image::Image* image, const std::string& sandbox_on_host) {
  return image != nullptr ? kSandboxMount : sandbox_on_host;
}

bool gets_driver_volume(const Launch& launch, const image::Image* image) {
  return image != nullptr && launch.task.driver == workload::DriverSource::kHost &&
         !launch.gpu_devices.empty() && launch.driver.volume &&
         driver::wants_volume(image->config.environment, image->config.labels);
}

bool is_guarded(const Launch& launch, const image::Image* image) {
  if (launch.limits.empty()) return false;
  if (image == nullptr) return !launch.driver.on_host.empty();
  return gets_driver_volume(launch, image) || gets_driver_files(launch, image);
}

bool gets_driver_files(const Launch& launch, const image::Image* image) {
  return image != nullptr && launch.task.driver == workload::DriverSource::kHost &&
         !launch.gpu_devices.empty() && launch.driver.files;
}

std::map<std::string, std::string> own_environment(const Launch& launch, const image::Image* image,
                                                   const std::string& sandbox_on_host) {
  auto own = machine_variables(launch);
  own["NVIDIA_VISIBLE_DEVICES"] =
      launch.gpu_uuids.empty() ? "void" : fmt::format("{}", fmt::join(launch.gpu_uuids, ","));
  own["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID";
  if (launch.mps) own[share::kMpsPipeVariable] = kMpsInTask;
  own["MESOS_SANDBOX"] = own["MESOS_DIRECTORY"] = sandbox_inside(image, sandbox_on_host);
  const auto& known_as = launch.task.origin.task_id;
  own["MESOS_TASK_ID"] = known_as.empty() ? launch.task.id : known_as;
  own["DROVER_TASK_ID"] = launch.task.id;
  return own;
}

std::vector<std::string> environment_of(const Launch& launch, const image::Image* image, const User& user,
                                        const std::string& sandbox_on_host, bool compat) {
  auto variables = defaults(user);
  if (image != nullptr)
    for (const auto& [name, value] : image->config.environment) variables[name] = value;
  if (launch.gang)
    for (const auto& [name, value] : gang_environment(*launch.gang)) variables[name] = value;
  for (const auto& [name, value] : launch.task.environment) variables[name] = value;
  if (launch.task.terminal) variables.try_emplace("TERM", "xterm");
  // After the task's own: a task that sets PATH would lose its driver otherwise.
  if (gets_driver_volume(launch, image))
    for (const auto& [name, value] :
         driver::volume_environment({variables.begin(), variables.end()}, compat, !launch.limits.empty()))
      variables[name] = value;
  for (const auto& [name, value] : own_environment(launch, image, sandbox_on_host)) variables[name] = value;

  std::vector<std::string> assignments;
  for (const auto& [name, value] : variables) assignments.push_back(name + "=" + value);
  return assignments;
}

}  // namespace drover::container
