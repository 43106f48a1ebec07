#include "container/environment.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>

#include "driver/injection.h"

namespace drover::container {
namespace {

using Variables = std::map<std::string, std::string>;

constexpr const char* kDefaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

Variables defaults(const User& user) {
  return {{"PATH", kDefaultPath}, {"HOME", user.home}, {"USER", user.name}, {"LOGNAME", user.name}};
}

}  // namespace

std::string sandbox_inside(const image::Image* image, const std::string& sandbox_on_host) {
  return image != nullptr ? kSandboxMount : sandbox_on_host;
}

bool gets_driver_volume(const Launch& launch, const image::Image* image) {
  return image != nullptr && !launch.gpu_devices.empty() && launch.driver.volume &&
         driver::wants_volume(image->config.environment, image->config.labels);
}

std::vector<std::string> environment_of(const Launch& launch, const image::Image* image, const User& user,
                                        const std::string& sandbox_on_host) {
  auto variables = defaults(user);
  if (image != nullptr)
    for (const auto& [name, value] : image->config.environment) variables[name] = value;
  for (const auto& [name, value] : launch.task.environment) variables[name] = value;
  // After the task's own: a task that sets PATH would lose its driver otherwise.
  if (gets_driver_volume(launch, image))
    for (const auto& [name, value] : driver::volume_environment({variables.begin(), variables.end()}))
      variables[name] = value;
  variables["NVIDIA_VISIBLE_DEVICES"] =
      launch.gpu_uuids.empty() ? "void" : fmt::format("{}", fmt::join(launch.gpu_uuids, ","));
  variables["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID";
  variables["MESOS_SANDBOX"] = sandbox_inside(image, sandbox_on_host);
  variables["MESOS_TASK_ID"] = launch.task.id;
  variables["DROVER_TASK_ID"] = launch.task.id;

  std::vector<std::string> assignments;
  for (const auto& [name, value] : variables) assignments.push_back(name + "=" + value);
  return assignments;
}

}  // namespace drover::container
