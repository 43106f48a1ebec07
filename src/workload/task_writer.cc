#include "workload/task_writer.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "base/json_writer.h"
#include "workload/resource_fields.h"
#include "workload/stored.h"

namespace drover::workload {
namespace {

using nlohmann::json;

void write_claim(JsonWriter& writer, const DeviceClaim& claim) {
  const auto& filter = claim.filter;
  writer.begin_object();
  if (const auto& capability = filter.min_compute_capability)
    writer.field("compute_capability", fmt::format("{}.{}", capability->major, capability->minor));
  writer.field("count", claim.count);
  if (!filter.min_driver.empty()) writer.field("driver", filter.min_driver);
  if (filter.ecc) writer.field("ecc", *filter.ecc);
  if (filter.min_memory_bytes > 0) writer.field("memory", filter.min_memory_bytes);
  if (!filter.models.empty()) writer.field("model", filter.models);
  writer.end_object();
}

}  // namespace

void write_kinds(JsonWriter& writer, const std::vector<DeviceClaim>& kinds) {
  writer.begin_array();
  for (const auto& kind : kinds) write_claim(writer, kind);
  writer.end_array();
}

namespace {

/// "gpus" is always the number of them; "gpu_claims" has the kinds when there is more to say.
void write_gpus(JsonWriter& writer, const Resources& resources) {
  const auto& gpus = resources.gpus;
  if (gpus.size() > 1 || (gpus.size() == 1 && gpus.front().filter != DeviceFilter())) {
    writer.key("gpu_claims");
    write_kinds(writer, gpus);
  }
  write_gpu_count(writer, resources);
}

void write_constraints(JsonWriter& writer, const std::vector<AttributeConstraint>& constraints) {
  std::map<std::string, std::vector<std::string>> by_name;
  for (const auto& [name, any_of] : constraints) by_name[name] = any_of;
  writer.key("constraints");
  writer.begin_object();
  for (const auto& [name, any_of] : by_name) writer.field(name, any_of);
  writer.end_object();
}

void write_gang(JsonWriter& writer, const GangMembership& gang) {
  writer.key("gang");
  writer.begin_object();
  writer.field("arrangement", to_string(gang.arrangement));
  writer.field("id", gang.id);
  writer.field("rank", gang.rank);
  writer.field("size", gang.size);
  writer.end_object();
}

void write_limits(JsonWriter& writer, const Limits& limits) {
  writer.key("limits");
  writer.begin_object();
  if (limits.milli_cpus) writer.field("cpus", static_cast<double>(*limits.milli_cpus) / 1000);
  if (limits.memory_bytes) writer.field("memory", *limits.memory_bytes);
  writer.end_object();
}

void write_origin(JsonWriter& writer, const Origin& origin) {
  writer.key("origin");
  writer.begin_object();
  writer.field("kind", json(origin.kind).get_ref<const std::string&>());
  writer.field("name", origin.name);
  writer.field("task_id", origin.task_id);
  writer.field("version", origin.version);
  writer.end_object();
}

void write_user(JsonWriter& writer, const User& user) {
  writer.key("user");
  writer.begin_object();
  writer.field("gid", user.gid);
  writer.field("groups", user.groups);
  writer.field("home", user.home);
  writer.field("name", user.name);
  writer.field("uid", user.uid);
  writer.end_object();
}

/// What few tasks have: as the library writes it.
void write_rare(JsonWriter& writer, std::string_view name, const json& value) {
  writer.field_raw(name, to_text(value));
}

}  // namespace

void write_gpu_count(JsonWriter& writer, const Resources& resources) {
  const auto& share = resources.share;
  if (!resources.part.empty()) {
    writer.field("gpu_part", resources.part);
  } else if (!share.whole()) {
    writer.key("gpu_share");
    writer.begin_object();
    if (share.memory_bytes > 0)
      writer.field("memory_bytes", share.memory_bytes);
    else
      writer.field("milli", share.milli);
    writer.end_object();
  }
  writer.field("gpus", resources.gpu_count());
}

void write(JsonWriter& writer, const Task& task) {
  const auto& resources = task.resources;
  writer.begin_object();
  const auto& batch = task.batch;
  write(writer, "after", batch.after);
  if (batch.array) {
    writer.key("array");
    write(writer, *batch.array);
  }
  if (batch.begin) writer.field("begin", format_time(*batch.begin));
  if (task.bypass_entrypoint) writer.field("bypass_entrypoint", true);
  writer.field("command", *task.command);
  if (!resources.attributes.empty()) write_constraints(writer, resources.attributes);
  if (task.container_type != ContainerType::kAny)
    writer.field("container_type", task.container_type == ContainerType::kDocker ? "docker" : "mesos");
  if (resources.cpu_affinity != Preference::kPrefer)
    writer.field("cpu_affinity", to_string(resources.cpu_affinity));
  writer.field("cpus", static_cast<double>(resources.milli_cpus) / 1000);
  if (!task.devices.empty()) writer.field("devices", task.devices);
  if (resources.different_models) writer.field("different_models", true);
  if (task.driver == DriverSource::kNone) writer.field("driver", "none");
  writer.field("env", *task.environment);
  if (!task.fetch.empty()) write_rare(writer, "fetch", *task.fetch);
  if (task.gang) write_gang(writer, *task.gang);
  write_gpus(writer, resources);
  writer.field("grace_ms", task.grace.count());
  if (!resources.group.empty()) writer.field("group", resources.group);
  writer.field("id", task.id);
  if (batch.idle_timeout) writer.field("idle_timeout_ms", batch.idle_timeout->count());
  if (task.image) writer.field("image", *task.image);
  if (resources.interconnect.asks()) writer.field("interconnect", to_string(resources.interconnect));
  writer.field("labels", *task.labels);
  if (task.limits != Limits()) write_limits(writer, task.limits);
  writer.field("memory", resources.memory_bytes);
  writer.field("name", task.name);
  if (!task.name_space.empty()) writer.field("namespace", task.name_space);
  if (task.network != Network()) write_rare(writer, "network", task.network);
  if (resources.nic != Preference::kNone) writer.field("nic", to_string(resources.nic));
  if (task.origin != Origin()) write_origin(writer, task.origin);
  writer.field("owner", task.owner);
  writer.field("owner_name", task.owner_name);
  if (task.processes) writer.field("pids", *task.processes);
  writer.field("priority", task.priority);
  if (task.privileged) writer.field("privileged", true);
  if (task.pull != PullPolicy::kMissing) writer.field("pull", name_of(task.pull));
  if (task.pull_timeout) writer.field("pull_timeout_ms", task.pull_timeout->count());
  writer.field("queue", task.queue);
  writer.field("read_only", task.read_only);
  if (batch.requeue != Requeue::kPreempted) writer.field("requeue", to_string(batch.requeue));
  if (batch.retries > 0) writer.field("retries", batch.retries);
  if (resources.share_by != ShareBy::kAuto)
    writer.field("share_by", kShareWays.at(static_cast<std::size_t>(resources.share_by)));
  if (task.takes_input) writer.field("stdin", true);
  if (task.timeout) writer.field("timeout_ms", task.timeout->count());
  if (task.terminal)
    write_rare(writer, "tty", {{"rows", task.terminal->rows}, {"columns", task.terminal->columns}});
  write_user(writer, task.user);
  if (!task.volumes.empty()) write_rare(writer, "volumes", *task.volumes);
  writer.field("working_directory", task.working_directory);
  writer.end_object();
}

std::string template_text(const Task& task) {
  std::string text;
  JsonWriter writer(text);
  writer.begin_object();
  writer.field("command", *task.command);
  writer.field("env", *task.environment);
  write_rare(writer, "fetch", *task.fetch);
  writer.field("labels", *task.labels);
  write_rare(writer, "volumes", *task.volumes);
  writer.end_object();
  return text;
}

std::uint64_t definition_bytes(const Task& task) {
  std::string text;
  JsonWriter writer(text);
  write(writer, task);
  return text.size();
}

std::uint64_t DefinitionSizes::of(const Task& task) {
  auto own = task;
  take_template(own, {});
  auto bytes = definition_bytes(own);
  Task alone;  // has one part, and nothing else
  auto part_bytes = part_bytes_.begin();
  each_template_part(
      [&](const auto& part, auto& last, auto& its) {
        if (!part.is_one_with(last)) {
          last = its = part;
          *part_bytes = definition_bytes(alone) - definition_bytes({});
          its = {};
        }
        bytes += *part_bytes++;
      },
      task, last_, alone);
  return bytes;
}

}  // namespace drover::workload
