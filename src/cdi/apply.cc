#include "cdi/apply.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace drover::cdi {
namespace {

using nlohmann::json;

constexpr const char* kHookPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

json& list_in(json& object, const char* name) {
  auto& list = object[name];
  if (!list.is_array()) list = json::array();
  return list;
}

/// Removes what is at the same place.
void replace_at(json& list, const char* key, json item) {
  list.erase(std::remove_if(list.begin(), list.end(),
                            [&](const json& other) {
                              return other.value(key, std::string()) ==
                                     item[key].get_ref<const std::string&>();
                            }),
             list.end());
  list.push_back(std::move(item));
}

Status add_device(const DeviceNode& node, json& config) {
  if (node.type.empty() || (node.type != "p" && (!node.major || !node.minor)))
    return fail(ErrorKind::kInternal, fmt::format("The numbers of the device '{}' are not known", node.path));
  json device{{"path", node.path}, {"type", node.type}};
  if (node.type != "p") {
    device["major"] = *node.major;
    device["minor"] = *node.minor;
  }
  if (node.file_mode) device["fileMode"] = *node.file_mode;
  const auto owner = [&](const char* name, std::optional<std::uint32_t> stated) {
    const auto id = stated.value_or(config["process"]["user"].value(name, 0U));
    if (stated || id > 0) device[name] = id;
  };
  owner("uid", node.uid);
  owner("gid", node.gid);
  replace_at(list_in(config["linux"], "devices"), "path", std::move(device));
  if (node.type != "b" && node.type != "c") return {};
  const auto access = node.permissions == "none" ? "" : node.permissions.empty() ? "rwm" : node.permissions;
  list_in(config["linux"]["resources"], "devices")
      .push_back({{"allow", true},
                  {"type", node.type},
                  {"major", *node.major},
                  {"minor", *node.minor},
                  {"access", access}});
  return {};
}

void add_mount(const Mount& mount, json& config) {
  const bool bind = std::ranges::any_of(
      mount.options, [](const std::string& option) { return option == "bind" || option == "rbind"; });
  json made{{"destination", mount.container_path}, {"source", mount.host_path}, {"options", mount.options}};
  if (!mount.type.empty() || bind) made["type"] = mount.type.empty() ? "bind" : mount.type;
  replace_at(list_in(config, "mounts"), "destination", std::move(made));
}

void add_hook(const Hook& hook, json& config) {
  json made{{"path", hook.path}};
  if (!hook.arguments.empty()) made["args"] = hook.arguments;
  made["env"] = hook.environment.empty() ? std::vector<std::string>{kHookPath} : hook.environment;
  if (hook.timeout_seconds) made["timeout"] = *hook.timeout_seconds;
  list_in(config["hooks"], hook.name.c_str()).push_back(std::move(made));
}

void set_rdt(const IntelRdt& rdt, json& config) {
  auto& made = config["linux"]["intelRdt"] = json::object();
  if (!rdt.clos_id.empty()) made["closID"] = rdt.clos_id;
  if (!rdt.l3_cache_schema.empty()) made["l3CacheSchema"] = rdt.l3_cache_schema;
  if (!rdt.memory_bandwidth_schema.empty()) made["memBwSchema"] = rdt.memory_bandwidth_schema;
  if (rdt.enable_cmt) made["enableCMT"] = true;
  if (rdt.enable_mbm) made["enableMBM"] = true;
  if (!rdt.schemata.empty()) made["schemata"] = rdt.schemata;
  if (rdt.enable_monitoring) made["enableMonitoring"] = true;
}

}  // namespace

void set_environment(json& config, const std::string& assignment) {
  auto& list = list_in(config["process"], "env");
  const auto name = assignment.substr(0, assignment.find('=') + 1);
  const auto found = std::find_if(list.begin(), list.end(), [&](const json& other) {
    return other.get_ref<const std::string&>().starts_with(name);
  });
  if (found == list.end())
    list.push_back(assignment);
  else
    *found = assignment;
}

Status apply_edits(const Edits& edits, json& config) {
  if (!edits.net_devices.empty())
    return fail(ErrorKind::kUnsupported, "The device moves a network interface into the container",
                "no OCI runtime that Drover works with can do that");
  for (const auto& assignment : edits.environment) set_environment(config, assignment);
  for (const auto& node : edits.device_nodes) DROVER_CHECK_OK(add_device(node, config));
  for (const auto& mount : edits.mounts) add_mount(mount, config);
  for (const auto& hook : edits.hooks) add_hook(hook, config);
  if (edits.intel_rdt) set_rdt(*edits.intel_rdt, config);
  for (const auto gid : edits.additional_gids) {
    auto& groups = list_in(config["process"]["user"], "additionalGids");
    if (gid != 0 && std::find(groups.begin(), groups.end(), json(gid)) == groups.end()) groups.push_back(gid);
  }
  return {};
}

}  // namespace drover::cdi
