#include "api/native/views.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/base64.h"
#include "base/units.h"
#include "gpu/topology.h"
#include "placement/rules_json.h"
#include "workload/task_writer.h"

namespace drover::api {
namespace {

using nlohmann::json;

template <typename T>
json optional(const std::optional<T>& value) {
  return value ? json(*value) : json(nullptr);
}

json cpus(std::int64_t milli_cpus) {
  return static_cast<double>(milli_cpus) / 1000;
}

std::string_view name_of(gpu::MigMode mode) {
  switch (mode) {
    case gpu::MigMode::kUnsupported:
      return "unsupported";
    case gpu::MigMode::kDisabled:
      return "disabled";
    case gpu::MigMode::kEnabled:
      return "enabled";
  }
  return "unsupported";
}

json view_device(const gpu::Device& device) {
  json value = {{"index", device.index},
                {"uuid", device.uuid},
                {"model", device.model},
                {"minor", optional(device.minor)},
                {"memory_bytes", optional(device.memory_bytes)},
                {"compute_capability", nullptr},
                {"ecc", optional(device.ecc)},
                {"pci", nullptr},
                {"board_id", optional(device.board_id)},
                {"numa_node", optional(device.numa_node)},
                {"cpus", device.cpus},
                {"mig", name_of(device.mig)},
                {"serial", device.serial},
                {"healthy", gpu::illness_of(device).empty()},
                {"unfit", gpu::illness_of(device)},
                {"cordoned", device.cordoned},
                {"problems", view(device.problems)}};
  if (const auto& capability = device.compute_capability)
    value["compute_capability"] = fmt::format("{}.{}", capability->major, capability->minor);
  if (device.pci) value["pci"] = gpu::to_string(*device.pci);
  return value;
}

json view_link(const gpu::Link& link) {
  return {{"label", gpu::link_label(link)}, {"nvlinks", link.nvlinks}, {"pcie", gpu::to_string(link.pcie)}};
}

json view_amounts(const placement::ResourceAmounts& amounts) {
  return {{"gpus", static_cast<double>(amounts.gpu_milli) / 1000},
          {"cpus", cpus(amounts.milli_cpus)},
          {"memory", amounts.memory_bytes}};
}

/// What of the machine is wanted besides its GPUs.
json view_host_amounts(const workload::Resources& resources) {
  return {{"cpus", cpus(resources.milli_cpus)}, {"memory", resources.memory_bytes}};
}

/// Of whole GPUs there is none.
void add_tier(json& part, std::string_view tier) {
  if (!tier.empty()) part["tier"] = tier;
}

/// A part that was not made yet has no UUID.
void add_mig(json& part, const std::optional<placement::MigGrant>& mig) {
  if (!mig) return;
  part["mig"] = {{"profile", mig->profile},
                 {"profile_id", mig->profile_id},
                 {"start", mig->placement.start},
                 {"size", mig->placement.size}};
  if (!mig->uuid.empty()) part["mig"]["uuid"] = mig->uuid;
}

json view_holder(const engine::Views::Holder& holder) {
  json value = {{"user", holder.user},
                {"task", holder.task_id.empty() ? json(nullptr) : json(holder.task_id)},
                {"milli", holder.milli},
                {"memory", holder.memory_bytes}};
  add_tier(value, holder.tier);
  add_mig(value, holder.mig);
  if (holder.by_mps) value["share_by"] = "mps";
  if (!holder.group.empty()) value["group"] = holder.group;
  return value;
}

/// What every listing of the machine's GPUs says first: that they are simulated, if they are.
json machine(const gpu::Inventory& inventory) {
  return {{"simulated", inventory.simulated},
          {"simulation", inventory.simulation},
          {"driver_version", inventory.driver_version},
          {"cuda_version", inventory.cuda_version},
          {"problems", view(inventory.problems)}};
}

/// What is said of all of them; versions are those of the first that has any.
json together(const std::vector<engine::Views::Machine>& machines) {
  gpu::Inventory all;
  for (const auto& [node, inventory] : machines) {
    all.simulated = all.simulated || inventory.simulated;
    if (all.simulation.empty()) all.simulation = inventory.simulation;
    if (all.driver_version.empty()) all.driver_version = inventory.driver_version;
    if (all.cuda_version.empty()) all.cuda_version = inventory.cuda_version;
    all.problems.insert(all.problems.end(), inventory.problems.begin(), inventory.problems.end());
  }
  return machine(all);
}

void add_remedies(json& value, const std::vector<control::Remedy>& remedies) {
  value["remedies"] = json::array();
  value["changes"] = json::array();
  for (const auto& [text, changes] : remedies) {
    value["remedies"].push_back(text);
    if (!changes.empty()) value["changes"].push_back({{"remedy", text}, {"task", changes}});
  }
}

}  // namespace

json view(const engine::NodeView& node) {
  return {{"name", node.name},
          {"cordoned", node.cordoned},
          {"gpus", {{"total", node.gpus_total}, {"free", node.gpus_free}}},
          {"cpus", {{"total", cpus(node.milli_cpus_total)}, {"free", cpus(node.milli_cpus_free)}}},
          {"memory_bytes", {{"total", node.memory_bytes_total}, {"free", node.memory_bytes_free}}},
          {"disk_bytes", node.disk_bytes},
          {"ports", {{"begin", node.port_begin}, {"end", node.port_end}}},
          {"resources", node.resources},
          {"runtime", node.runtime},
          {"keep_ended_ms", node.keep_ended.count()},
          {"cgroups", node.cgroups}};
}

std::string text_of(const engine::EventView& event) {
  std::string text;
  JsonWriter writer(text);
  const auto text_or_null = [&](const auto& name, const std::string& value) {
    writer.key(name);
    if (value.empty())
      writer.null();
    else
      writer.value(value);
  };
  writer.begin_object();
  writer.field("at", format_time(event.at));
  // An object of at least one field, without its braces.
  if (event.facts.size() > 2) writer.raw(std::string_view(event.facts).substr(1, event.facts.size() - 2));
  writer.field("kind", event.kind);
  writer.field("message", event.message);
  text_or_null("name", event.name);
  writer.field("number", event.number);
  text_or_null("part_of", event.part_of);
  text_or_null("task", event.task_id);
  text_or_null("user", event.user);
  writer.end_object();
  return text;
}

namespace {

void write_summary(JsonWriter& writer, const workload::Task& task) {
  writer.begin_object();
  if (const auto& array = task.batch.array)
    writer.field_raw(
        "array", fmt::format(R"({{"id":"{}","index":{},"size":{}}})", array->id, array->index, array->size));
  if (task.gang)
    writer.field_raw("gang", fmt::format(R"({{"id":"{}","rank":{},"size":{}}})", task.gang->id,
                                         task.gang->rank, task.gang->size));
  if (!task.resources.gpus.empty()) workload::write_gpu_count(writer, task.resources);
  writer.field("id", task.id);
  if (!task.labels.empty()) writer.field("labels", *task.labels);
  writer.field("name", task.name);
  writer.field("priority", task.priority);
  writer.field("queue", task.queue);
  if (task.resources.by_mps()) writer.field("share_by", "mps");
  writer.key("user");
  writer.begin_object();
  writer.field("name", task.user.name);
  writer.end_object();
  writer.end_object();
}

}  // namespace

void write_summary(JsonWriter& writer, const control::TaskRecord& record) {
  writer.begin_object();
  if (record.cause != control::Cause::kNone) writer.field("cause", control::to_string(record.cause));
  if (record.exit_status) writer.field("exit_status", *record.exit_status);
  if (record.finished_at) writer.field("finished_at", format_time(*record.finished_at));
  writer.key("grants");
  control::write(writer, record.gpus, record.tier);
  writer.field("reason", record.reason);
  if (record.started_at) writer.field("started_at", format_time(*record.started_at));
  writer.field("state", control::to_string(record.state));
  writer.field("submitted_at", format_time(record.submitted_at));
  writer.key("task");
  write_summary(writer, record.task);
  writer.end_object();
}

json view(const engine::ExplanationView& explanation) {
  const auto task = workload::encode(explanation.record.task);
  json value = {
      {"id", task.at("id")},           {"state", control::to_string(explanation.record.state)},
      {"queue", task.at("queue")},     {"priority", task.at("priority")},
      {"place", explanation.place},    {"wanted", view_host_amounts(explanation.record.task.resources)},
      {"reasons", explanation.reasons}};
  add_remedies(value, explanation.remedies);
  if (explanation.expected_run) value["expected_run_ms"] = explanation.expected_run->count();
  if (explanation.expected_start) value["expected_start"] = format_time(*explanation.expected_start);
  for (const auto* whole : {"gang", "array"})
    if (task.contains(whole)) value[whole] = task[whole];
  return value;
}

json view(const engine::PlanView& plan) {
  json members = json::array();
  for (const auto& decision : plan.members) {
    json gpus = json::array();
    for (const auto& grant : decision.gpus) {
      gpus.push_back({{"gpu", grant.uuid}, {"milli", grant.milli}, {"memory", grant.memory_bytes}});
      if (grant.mig) add_tier(gpus.back(), gpu::kHard);
      add_mig(gpus.back(), grant.mig);
    }
    members.push_back({{"node", decision.node},
                       {"gpus", std::move(gpus)},
                       {"cpus", decision.cpus},
                       {"nics", decision.nics}});
  }
  json wanted = json::array();
  for (const auto& resources : plan.wanted) wanted.push_back(view_host_amounts(resources));
  json value = {{"starts_now", plan.starts_now}, {"wanted", std::move(wanted)},
                {"members", std::move(members)}, {"victims", plan.victims},
                {"victim_ids", plan.victim_ids}, {"place", plan.place},
                {"reasons", plan.reasons}};
  add_remedies(value, plan.remedies);
  return value;
}

json view(const engine::QueueView& queue) {
  json value = placement::encode(queue.queue);
  value["used"] = view_amounts(queue.used);
  value["usable"] = queue.usable;
  value["waiting"] = json::array();
  for (const auto& waiting : queue.waiting)
    value["waiting"].push_back({{"id", waiting.id.empty() ? json(nullptr) : json(waiting.id)},
                                {"user", waiting.user},
                                {"wanted", view_amounts(waiting.wanted)},
                                {"members", waiting.members},
                                {"priority", waiting.id.empty() ? json(nullptr) : json(waiting.priority)},
                                {"submitted_at", format_time(waiting.submitted_at)},
                                {"reasons", waiting.reasons},
                                {"place", waiting.place}});
  return value;
}

json view(const engine::QuotaView& quota) {
  json value = placement::encode(quota.quota);
  value["used"] = view_amounts(quota.used);
  return value;
}

json view(const FileInfo& file) {
  return {{"name", file.name},
          {"kind", file.kind},
          {"size", file.size},
          {"mode", fmt::format("{:04o}", file.mode)},
          {"uid", file.uid},
          {"gid", file.gid},
          {"modified_at", format_time(file.modified_at)}};
}

json view(const std::vector<Error>& problems) {
  json list = json::array();
  for (const auto& problem : problems)
    list.push_back({{"kind", error_kind_info(problem.kind).name},
                    {"message", problem.message},
                    {"hint", problem.hint},
                    {"path", problem.path}});
  return list;
}

json view_gpus(const std::vector<engine::Views::Machine>& machines,
               const std::vector<engine::Views::Holder>& holders) {
  json value = together(machines);
  value["gpus"] = json::array();
  for (const auto& [node, inventory] : machines)
    for (const auto& device : inventory.devices) {
      json shown = view_device(device);
      shown["node"] = node.name;
      shown["holders"] = json::array();
      for (const auto& holder : holders)
        if (holder.uuid == device.uuid) shown["holders"].push_back(view_holder(holder));
      shown["used_by"] = shown["holders"].empty() ? json(nullptr) : shown["holders"].front();
      value["gpus"].push_back(std::move(shown));
    }
  return value;
}

json view_topology(const std::vector<engine::Views::Machine>& machines) {
  json value = together(machines);
  value["gpus"] = json::array();
  value["links"] = json::array();
  std::string text;
  std::size_t before = 0, all = 0;
  for (const auto& machine : machines) all += machine.inventory.devices.size();
  for (const auto& [node, inventory] : machines) {
    for (const auto& device : inventory.devices)
      value["gpus"].push_back({{"index", device.index},
                               {"node", node.name},
                               {"uuid", device.uuid},
                               {"model", device.model},
                               {"numa_node", optional(device.numa_node)},
                               {"cpus", device.cpus}});
    // Of two machines nobody says how they are joined.
    for (const auto& row : inventory.links) {
      json links(all, view_link({}));
      for (std::size_t i = 0; i < row.size(); ++i) links[before + i] = view_link(row[i]);
      value["links"].push_back(std::move(links));
    }
    before += inventory.devices.size();
    if (machines.size() > 1) text += (text.empty() ? "" : "\n") + node.name + ":\n";
    text += gpu::topology_matrix(inventory);
  }
  value["text"] = text;
  return value;
}

json view_bytes(const std::string& bytes) {
  if (is_utf8(bytes)) return {{"encoding", "utf-8"}, {"data", bytes}};
  return {{"encoding", "base64"}, {"data", encode_base64(bytes)}};
}

json view(const engine::NamedImage& image) {
  return {{"name", image.name.familiar()}, {"digest", image.manifest.digest},
          {"bytes", image.bytes},          {"pulled_at", format_time(image.pulled_at)},
          {"everybody", image.everybody},  {"users", image.users}};
}

json view(const engine::ImageDetails& details) {
  auto shown = view(details.image);
  const auto& config = details.contents.config;
  auto& layers = shown["layers"] = json::array();
  for (const auto& layer : details.contents.layers)
    layers.push_back({{"digest", layer.digest}, {"diff_id", layer.diff_id}});
  json variables = json::object();
  for (const auto& [name, value] : config.environment) variables[name] = value;
  shown["config"] = {{"architecture", config.architecture},
                     {"entrypoint", config.entrypoint},
                     {"command", config.command},
                     {"env", std::move(variables)},
                     {"user", config.user},
                     {"working_directory", config.working_directory},
                     {"labels", config.labels}};
  return shown;
}

json view(const engine::PullProgress& progress) {
  json layers = json::array();
  for (const auto& layer : progress.layers)
    layers.push_back({{"digest", layer.digest},
                      {"bytes", layer.bytes},
                      {"done", layer.done},
                      {"state", engine::state_name(layer)}});
  return {{"name", progress.name}, {"layers", std::move(layers)}};
}

}  // namespace drover::api
