// What a task's command and container bring along: variables, image, network, volumes, and what Docker is to
// be told.

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "api/mesos/task_info.h"
#include "base/sandbox.h"
#include "workload/docker_parameters.h"

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
  task.volumes.edit().push_back({volume.container_path(), path, volume.mode() == Volume::RO});
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
  for (const auto& parameter : docker.parameters())
    DROVER_CHECK_OK(workload::read_docker_parameter(parameter.key(), parameter.value(), task));
  return {};
}

}  // namespace

Status read_environment(const v1::Environment& environment, workload::Task& task) {
  for (const auto& variable : environment.variables()) {
    auto& value = task.environment.edit()[variable.name()] = variable.value();
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
