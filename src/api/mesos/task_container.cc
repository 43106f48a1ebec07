// What a task's command and container bring along: variables, image, network, volumes, and what Docker is to
// be told.

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "api/mesos/task_info.h"
#include "api/sandbox.h"
#include "cdi/names.h"

namespace drover::api::mesos {
namespace {

using v1::ContainerInfo;
using v1::Volume;
using workload::NetworkMode;

Failure cannot_keep(std::string what) {
  return fail(ErrorKind::kInvalid, std::move(what));
}

/// As Mesos tells them apart, which has no names for what its modules resolve.
Result<std::string> secret_of(const v1::Environment::Variable& variable) {
  const auto refuse = [&](std::string_view why) {
    return cannot_keep(fmt::format("Environment variable '{}' of type 'SECRET' {}", variable.name(), why));
  };
  if (!variable.has_secret()) return refuse("must have a secret set");
  if (variable.has_value()) return refuse("must not have a value set");
  const auto& secret = variable.secret();
  if (!secret.has_value()) return refuse("must have its value: nobody here resolves references");
  const auto& data = secret.value().data();
  if (data.find('\0') != std::string::npos) return refuse("contains null bytes");
  if (!is_utf8(data)) return refuse("is not UTF-8");
  return data;
}

Status read_volume(const Volume& volume, workload::Task& task) {
  const auto refuse = [&](std::string_view why) {
    return cannot_keep(fmt::format("The volume '{}' {}", volume.container_path(), why));
  };
  const auto& source = volume.source();
  if (volume.has_image() || (volume.has_source() && !source.has_host_path()))
    return refuse(fmt::format("is of {}; there are volumes of the host only",
                              volume.has_image() ? "an image" : Volume::Source::Type_Name(source.type())));
  const auto& path = volume.has_source() ? source.host_path().path() : volume.host_path();
  if (!path.starts_with('/')) return refuse(fmt::format("needs an absolute 'host_path', not '{}'", path));
  task.volumes.push_back({volume.container_path(), path, volume.mode() == Volume::RO});
  return {};
}

/// "/data:/mnt/data:ro"
Status read_volume_parameter(const std::string& value, workload::Task& task) {
  const auto colon = value.find(':');
  const auto end = colon == std::string::npos ? colon : value.find(':', colon + 1);
  const auto mode = end == std::string::npos ? "rw" : value.substr(end + 1);
  if (colon == std::string::npos || !value.starts_with('/') || (mode != "ro" && mode != "rw"))
    return cannot_keep(
        fmt::format("The volume '{}' of Docker cannot be kept: write /host:/container[:ro]", value));
  task.volumes.push_back({value.substr(colon + 1, end - colon - 1), value.substr(0, colon), mode == "ro"});
  return {};
}

/// A device of CDI; a path would be one of the machine's own.
Status read_device_parameter(const std::string& value, workload::Task& task) {
  if (const auto name = cdi::parse_device_name(value); !name)
    return cannot_keep(
        fmt::format("The device '{}' of Docker cannot be kept: write vendor.com/class=name", value));
  task.devices.push_back(value);
  return {};
}

/// Those of `docker run`. What the task itself says goes first.
Status read_parameter(const v1::Parameter& parameter, workload::Task& task) {
  constexpr std::array<std::string_view, 8> kWithoutEffect = {"log-driver", "log-opt", "name",      "restart",
                                                              "rm",         "init",    "sig-proxy", "pull"};
  const auto& key = parameter.key();
  const auto& value = parameter.value();
  const auto equals = value.find('=');
  if ((key == "env" || key == "e") && equals != std::string::npos && equals > 0)
    task.environment.emplace(value.substr(0, equals), value.substr(equals + 1));
  else if (key == "label" || key == "l")
    task.labels.emplace(value.substr(0, equals), equals == std::string::npos ? "" : value.substr(equals + 1));
  else if (key == "workdir" || key == "w")
    task.working_directory = value;
  else if (key == "read-only")
    task.read_only = value != "false";
  else if (key == "volume" || key == "v")
    return read_volume_parameter(value, task);
  else if (key == "device")
    return read_device_parameter(value, task);
  else if (std::ranges::find(kWithoutEffect, key) == kWithoutEffect.end())
    return cannot_keep(
        fmt::format("The parameter '{}' of Docker cannot be kept: there are env, label, workdir, "
                    "read-only, volume and device",
                    key));
  return {};
}

workload::Port mapped_port(std::uint32_t host, std::uint32_t container, const std::string& protocol) {
  workload::Port port;
  port.host_port = static_cast<int>(host);
  port.container_port = static_cast<int>(container);
  if (protocol == "udp") port.protocol = workload::PortProtocol::kUdp;
  return port;
}

Status read_docker(const ContainerInfo& container, workload::Task& task) {
  if (!container.has_docker()) return cannot_keep("ContainerInfo 'type' is DOCKER but 'docker' is not set");
  const auto& docker = container.docker();
  task.image = docker.image();
  task.privileged = docker.privileged();
  if (docker.force_pull_image()) task.pull = PullPolicy::kAlways;
  for (const auto& mapping : docker.port_mappings())
    task.network.ports.push_back(
        mapped_port(mapping.host_port(), mapping.container_port(), mapping.protocol()));
  if (docker.network() == ContainerInfo::DockerInfo::NONE)
    return cannot_keep("Containers without a network are not known here: there are HOST and BRIDGE");
  if (docker.network() != ContainerInfo::DockerInfo::HOST) task.network.mode = NetworkMode::kBridge;
  for (const auto& parameter : docker.parameters()) DROVER_CHECK_OK(read_parameter(parameter, task));
  return {};
}

}  // namespace

Status read_environment(const v1::Environment& environment, workload::Task& task) {
  for (const auto& variable : environment.variables()) {
    auto& value = task.environment[variable.name()] = variable.value();
    if (variable.type() != v1::Environment::Variable::SECRET) continue;
    DROVER_TRY(value, secret_of(variable));
  }
  return {};
}

Status read_container(const ContainerInfo& container, workload::Task& task) {
  const bool is_docker = container.type() == ContainerInfo::DOCKER;
  task.container_type = is_docker ? workload::ContainerType::kDocker : workload::ContainerType::kMesos;
  if (is_docker) {
    DROVER_CHECK_OK(read_docker(container, task));
  } else if (container.mesos().has_image()) {
    if (!container.mesos().image().has_docker())
      return cannot_keep("Only images of type DOCKER are known here");
    task.image = container.mesos().image().docker().name();
    if (!container.mesos().image().cached()) task.pull = PullPolicy::kAlways;
  }
  for (const auto& network : container.network_infos()) {
    if (network.port_mappings_size() > 0) task.network.mode = NetworkMode::kBridge;
    for (const auto& mapping : network.port_mappings())
      task.network.ports.push_back(
          mapped_port(mapping.host_port(), mapping.container_port(), mapping.protocol()));
  }
  for (const auto& volume : container.volumes()) DROVER_CHECK_OK(read_volume(volume, task));
  return {};
}

}  // namespace drover::api::mesos
