#include "workload/docker_parameters.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "cdi/names.h"

namespace drover::workload {
namespace {

constexpr std::array<std::string_view, 13> kWithoutEffect = {
    "hostname", "init", "log-driver", "log-opt",   "memory-swap", "memory-swappiness", "name", "pull",
    "restart",  "rm",   "shm-size",   "sig-proxy", "ulimit"};
/// What is there instead of parameters that people write often.
constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kInstead = {{
    {"user", "a task runs as a user of the machine, not of the image: name him in the definition itself"},
    {"add-host", "a task finds the names of the machine's /etc/hosts: add the name there"},
    {"dns", "a task resolves names as the machine does, by its /etc/resolv.conf"},
    {"ipc", "a task has shared memory of its own, as large as its memory: leave the parameter out"},
}};
constexpr std::array<std::string_view, 4> kOfGpus = {"gpus", "runtime", "volume-driver", "privileged"};

Failure refuse(const char* path, std::string why, std::string hint = "") {
  return fail(ErrorKind::kInvalid, std::move(why), std::move(hint), path);
}

/// "/srv/data:/data:ro"
Status read_volume(const std::string& value, Task& task) {
  const auto colon = value.find(':');
  const auto end = colon == std::string::npos ? colon : value.find(':', colon + 1);
  const auto mode = end == std::string::npos ? "rw" : value.substr(end + 1);
  if (colon == std::string::npos || !value.starts_with('/') || (mode != "ro" && mode != "rw"))
    return refuse("/value", fmt::format("the volume '{}' of Docker cannot be kept", value),
                  "write /host:/container[:ro]");
  task.volumes.edit().push_back(
      {value.substr(colon + 1, end - colon - 1), value.substr(0, colon), mode == "ro"});
  return {};
}

/// A device of CDI; a path would be one of the machine's own.
Status read_device(const std::string& value, Task& task) {
  if (const auto name = cdi::parse_device_name(value); !name)
    return refuse("/value", fmt::format("the device '{}' of Docker cannot be kept", value),
                  "write vendor.com/class=name");
  task.devices.push_back(value);
  return {};
}

}  // namespace

Status read_docker_parameter(const std::string& key, const std::string& value, Task& task) {
  const auto equals = value.find('=');
  if (key == "env" || key == "e") {
    if (equals == std::string::npos || equals == 0)
      return refuse("/value", fmt::format("the variable '{}' of Docker cannot be kept", value),
                    "write NAME=VALUE");
    task.environment.edit().emplace(value.substr(0, equals), value.substr(equals + 1));
  } else if (key == "label" || key == "l") {
    task.labels.edit().emplace(value.substr(0, equals),
                               equals == std::string::npos ? "" : value.substr(equals + 1));
  } else if (key == "workdir" || key == "w") {
    task.working_directory = value;
  } else if (key == "read-only") {
    task.read_only = value != "false";
  } else if (key == "volume" || key == "v") {
    return read_volume(value, task);
  } else if (key == "device") {
    return read_device(value, task);
  } else if (std::ranges::find(kOfGpus, key) != kOfGpus.end()) {
    return refuse("/key", fmt::format("the parameter '{}' of Docker would go around the choice of GPUs", key),
                  "ask for GPUs with 'gpus'");
  } else if (key == "ipc" && value == "private") {
    return {};  // as it is
  } else if (const auto* instead = std::ranges::find(kInstead, key, &decltype(kInstead)::value_type::first);
             instead != kInstead.end()) {
    return refuse("/key", fmt::format("the parameter '{}' of Docker cannot be kept", key),
                  std::string(instead->second));
  } else if (std::ranges::find(kWithoutEffect, key) == kWithoutEffect.end()) {
    return refuse(
        "/key", fmt::format("the parameter '{}' of Docker cannot be kept", key),
        fmt::format("there are env, label, workdir, read-only, volume and device; without effect are {}",
                    fmt::join(kWithoutEffect, ", ")));
  }
  return {};
}

}  // namespace drover::workload
