#include "container/docker/create_body.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "container/bundle.h"
#include "container/docker/engine_mounts.h"
#include "container/environment.h"
#include "container/init.h"
#include "container/limits.h"
#include "container/network/network_plan.h"
#include "container/own_places.h"

namespace drover::container::docker {
namespace {

using nlohmann::json;

json bind_mount(const std::string& source, const std::string& target, bool read_only) {
  return {{"Type", "bind"},
          {"Source", source},
          {"Target", target},
          {"ReadOnly", read_only},
          {"BindOptions", {{"Propagation", "rprivate"}}}};
}

json mounts_of(const Launch& launch, const BodyFacts& facts) {
  auto all = json::array();
  if (launch.mps)
    for (const auto& [source, destination, writable] : share::mps_mounts(*launch.mps, kMpsInTask))
      all.push_back(bind_mount(source, destination, !writable));
  for (const auto* parts : {&facts.driver_volume, &facts.share_pages})
    for (const auto& part : *parts) all.push_back(bind_mount(part.source, part.destination, !part.writable));
  all.push_back(bind_mount(facts.init, kInitInside, true));
  all.push_back(bind_mount(fmt::format("{}/{}", facts.volume_folder, kSandboxSource), kSandboxMount, false));
  for (std::size_t i = 0; i < facts.volumes.size(); ++i)
    if (!inner_place(facts.volumes, i))
      all.push_back(bind_mount(fmt::format("{}/{}", facts.volume_folder, i), facts.volumes[i].destination,
                               facts.volumes[i].read_only));
  return all;
}

/// Without the right to make nodes of them, which the engine gives for all devices alike.
json devices_of(const Launch& launch, const BodyFacts& facts) {
  auto list = json::array();
  for (const auto& node : device_nodes_of(launch))
    list.push_back({{"PathOnHost", fmt::format("{}/{}", facts.device_folder, list.size())},
                    {"PathInContainer", node.path},
                    {"CgroupPermissions", "rw"}});
  return list;
}

void add_limits(const Launch& launch, const BodyFacts& facts, json& host) {
  const auto& task = launch.task;
  if (task.resources.milli_cpus > 0) {
    const auto cpu = cpu_limits(task);
    host["CpuShares"] = cpu.shares;
    if (cpu.quota_micros > 0) {
      host["CpuQuota"] = cpu.quota_micros;
      host["CpuPeriod"] = cpu.period_micros;
    }
  }
  if (!facts.cpuset.empty()) host["CpusetCpus"] = facts.cpuset;
  host["PidsLimit"] = launch.processes;
  // Its pages count as the task's memory anyway, so a smaller limit would only get in the way.
  const auto memory = memory_limit(task, facts.machine_memory_bytes);
  host["ShmSize"] = memory > 0 ? memory : facts.machine_memory_bytes / 2;  // as much as a tmpfs has by itself
  if (task.may_exceed_memory()) host["MemoryReservation"] = task.resources.memory_bytes;
  if (memory == 0) return;
  host["Memory"] = memory;
  if (facts.limit_swap) host["MemorySwap"] = memory;
}

Status add_network(const Launch& launch, json& body, json& host) {
  const bool bridged = launch.task.network.mode == workload::NetworkMode::kBridge;
  host["NetworkMode"] = bridged ? "bridge" : "host";
  if (!bridged) return {};
  DROVER_TRY(const auto plan, plan_of(launch.task.network, launch.host_ports));
  for (const auto& forward : plan.forwards) {
    const auto inside = fmt::format("{}/{}", forward.container_port, forward.udp ? "udp" : "tcp");
    body["ExposedPorts"][inside] = json::object();
    host["PortBindings"][inside].push_back({{"HostIp", ""}, {"HostPort", std::to_string(forward.host_port)}});
  }
  return {};
}

Result<json> host_config(const Launch& launch, const BodyFacts& facts, json& body) {
  json host = {{"Mounts", mounts_of(launch, facts)},
               {"Devices", devices_of(launch, facts)},
               {"ReadonlyRootfs", launch.task.read_only},
               {"SecurityOpt", {"no-new-privileges"}},
               {"OomScoreAdj", std::max(facts.oom_score_adj, 0)},
               {"RestartPolicy", {{"Name", "no"}}},
               {"LogConfig",
                {{"Type", "json-file"},
                 {"Config",
                  {{"max-size", std::to_string(facts.logs.file_bytes)},
                   {"max-file", std::to_string(facts.logs.files)}}}}}};
  if (launch.task.privileged) host["Privileged"] = true;
  // What root keeps is Docker's default set; on the machine's own network he does not listen to others.
  const bool listens = launch.task.network.mode == workload::NetworkMode::kHost && !launch.task.privileged;
  if (facts.user.uid != 0)
    host["CapDrop"] = {"ALL"};
  else if (listens)
    host["CapDrop"] = {"NET_RAW"};
  for (const auto group : facts.user.groups) host["GroupAdd"].push_back(std::to_string(group));
  add_limits(launch, facts, host);
  DROVER_CHECK_OK(add_network(launch, body, host));
  return host;
}

}  // namespace

std::vector<gpu::DeviceNode> device_nodes_of(const Launch& launch) {
  auto nodes = launch.gpu_devices;
  if (!nodes.empty())
    nodes.insert(nodes.end(), launch.driver.control_devices.begin(), launch.driver.control_devices.end());
  return nodes;
}

Result<json> make_create_body(const Launch& launch, const image::Image& image, const BodyFacts& facts) {
  DROVER_TRY(const auto arguments, arguments_of(launch.task, &image));
  DROVER_TRY(const auto directory, working_directory_of(launch.task, &image, facts.sandbox));
  const auto command = engine_init_arguments(directory, arguments);
  // The init's own words, which docker_exec reads again.
  const auto end_of_entrypoint = command.end() - static_cast<std::ptrdiff_t>(arguments.size());
  json body = {{"Image", facts.image_id},
               // Both given: then none is the image's.
               {"Entrypoint", std::vector(command.begin(), end_of_entrypoint)},
               {"Cmd", std::vector(end_of_entrypoint, command.end())},
               {"Env", environment_of(launch, &image, facts.user, facts.sandbox, facts.compat)},
               {"WorkingDir", facts.entered},
               {"User", fmt::format("{}:{}", facts.user.uid, facts.user.gid)},
               {"AttachStdin", false},
               {"AttachStdout", true},
               {"AttachStderr", true},
               {"Tty", false},
               {"OpenStdin", false},
               {"StopTimeout", std::chrono::ceil<std::chrono::seconds>(launch.task.grace).count()},
               {"Labels",
                {{kTaskLabel, launch.task.id},
                 {kAttemptLabel, std::to_string(launch.attempt)},
                 {kStateLabel, facts.state}}}};
  if (const auto hostname = hostname_of(launch.task)) body["Hostname"] = *hostname;
  DROVER_TRY(auto host, host_config(launch, facts, body));
  body["HostConfig"] = std::move(host);
  return body;
}

}  // namespace drover::container::docker
