#include "container/bundle.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "cdi/apply.h"
#include "container/capabilities.h"
#include "container/environment.h"
#include "container/hidden_paths.h"
#include "container/init.h"
#include "container/limits.h"
#include "container/own_places.h"
#include "driver/cdi.h"

namespace drover::container {
namespace {

using nlohmann::json;

json capabilities(const User& user) {
  const json held = capabilities_of(user);
  return {{"bounding", held}, {"effective", held}, {"permitted", held}};
}

InitInput input_of(const workload::Task& task) {
  if (task.terminal) return InitInput::kTerminal;
  return task.takes_input ? InitInput::kGiven : InitInput::kNone;
}

Result<json> process(const Launch& launch, const image::Image* image, const BundleFacts& facts) {
  DROVER_TRY(const auto arguments, arguments_of(launch.task, image));
  DROVER_TRY(const auto directory, working_directory_of(launch.task, image, facts.sandbox));
  // The runtime enters it as root, before it becomes the user: the task's folder is left to the init.
  constexpr const char* kWherever = "/";
  json user = {{"uid", facts.user.uid}, {"gid", facts.user.gid}};
  if (!facts.user.groups.empty()) user["additionalGids"] = facts.user.groups;
  json process = {{"terminal", false},
                  {"user", std::move(user)},
                  {"args", init_arguments(directory, arguments, input_of(launch.task))},
                  {"env", environment_of(launch, image, facts.user, facts.sandbox, facts.compat)},
                  {"cwd", kWherever},
                  {"capabilities", capabilities(facts.user)},
                  {"noNewPrivileges", true},
                  {"oomScoreAdj", std::max(facts.oom_score_adj, 0)}};
  if (const auto& terminal = launch.task.terminal) {
    process["terminal"] = true;
    process["consoleSize"] = {{"height", terminal->rows}, {"width", terminal->columns}};
  }
  if (!facts.apparmor_profile.empty()) process["apparmorProfile"] = facts.apparmor_profile;
  if (facts.selinux) process["selinuxLabel"] = facts.selinux->process;
  return process;
}

json mount(std::string destination, std::string type, std::string source, std::vector<std::string> options) {
  return {{"destination", std::move(destination)},
          {"type", std::move(type)},
          {"source", std::move(source)},
          {"options", std::move(options)}};
}

/// Clients of an MPS daemon have that of their group instead.
json shared_memory(const workload::Task& task, const BundleFacts& facts) {
  std::vector<std::string> options = {"nosuid", "noexec", "nodev", "mode=1777"};
  // Its pages count as the task's memory anyway, so a smaller limit would only get in the way.
  if (const auto most = memory_limit(task, facts.machine_memory_bytes); most > 0)
    options.push_back(fmt::format("size={}", most));
  return mount(share::kMpsShm, "tmpfs", "shm", std::move(options));
}

json system_mounts(const BundleFacts& facts) {
  return json::array(
      {mount("/proc", "proc", "proc", {"nosuid", "noexec", "nodev"}),
       mount("/dev", "bind", facts.root + "/dev", {"rbind"}),
       mount("/dev/pts", "devpts", "devpts",
             {"nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", "gid=5"}),
       mount("/dev/mqueue", "mqueue", "mqueue", {"nosuid", "noexec", "nodev"}),
       mount(kInitInside, "bind", facts.init, {"bind", "ro", "nosuid", "nodev"}),
       mount(kFilterInside, "bind", facts.filter, {"bind", "ro", "nosuid", "nodev", "noexec"}),
       mount("/sys/fs/cgroup", "cgroup", "cgroup", {"nosuid", "noexec", "nodev", "relatime", "ro"})});
}

json mounts(const Launch& launch, const BundleFacts& facts) {
  auto all = system_mounts(facts);
  if (!launch.mps) all.push_back(shared_memory(launch.task, facts));
  for (const auto& file : facts.files)
    all.push_back(mount(file.destination, "bind", file.source, {"bind", "ro", "nosuid", "nodev", "noexec"}));
  for (const auto* parts : {&facts.driver_volume, &facts.guard})
    for (const auto& part : *parts)
      all.push_back(mount(part.destination, "bind", part.source,
                          {"rbind", part.writable ? "noexec" : "ro", "nosuid", "nodev"}));
  return all;
}

/// Also those in /dev, which the shim makes: the daemon's folders are closed to all but root, and a runtime
/// in a user namespace is not that.
void add_mps(const share::MpsPlaces& places, std::vector<BindPlan>& binds) {
  for (const auto& [source, destination, writable] : share::mps_mounts(places, kMpsInTask))
    binds.push_back({source, destination, {writable ? "noexec" : "ro", "noexec", "nosuid", "nodev"}});
}

/// What a CDI specification of exactly the GPUs of this container would do, and what the other devices do
/// that it asked for. Of the driver: nothing without GPUs.
cdi::Edits edits_of(const Launch& launch, const BundleFacts& facts) {
  auto edits = driver::edits_of_nodes(launch.gpu_devices);
  if (!launch.gpu_devices.empty()) edits.append(driver::edits_of_nodes(launch.driver.control_devices));
  edits.append(facts.driver_files);
  edits.append(launch.devices);
  return edits;
}

/// Everything is denied; edits allow exactly what was given. The runtime adds the harmless ones that every
/// container has (null, zero, full, random, urandom, tty, ptmx, pts), and mknod, which gives no right to
/// open.
json device_rules() {
  return json::array({{{"allow", false}, {"access", "rwm"}}});
}

json cpu_limits_of(const workload::Task& task) {
  const auto cpu = cpu_limits(task);
  json limits = {{"shares", cpu.shares}};
  if (cpu.quota_micros > 0) {
    limits["quota"] = cpu.quota_micros;
    limits["period"] = cpu.period_micros;
  }
  return limits;
}

json memory_limits_of(const workload::Task& task, const BundleFacts& facts) {
  json limits = json::object();
  if (const auto most = memory_limit(task, facts.machine_memory_bytes); most > 0) {
    limits["limit"] = most;
    // Memory and swap together: a task that is at its limit ends instead of making the machine crawl.
    if (facts.limit_swap) limits["swap"] = most;
  }
  if (task.may_exceed_memory()) limits["reservation"] = task.resources.memory_bytes;
  return limits;
}

json resources(const Launch& launch, const BundleFacts& facts) {
  const auto& task = launch.task;
  json limits = {{"devices", device_rules()}, {"pids", {{"limit", launch.processes}}}};
  if (task.resources.milli_cpus > 0) limits["cpu"] = cpu_limits_of(task);
  if (!facts.cpuset.empty()) limits["cpu"]["cpus"] = facts.cpuset;
  if (task.resources.memory_bytes > 0) limits["memory"] = memory_limits_of(task, facts);
  return limits;
}

json namespaces(const BundleFacts& facts) {
  auto list = json::array({{{"type", "pid"}}, {{"type", "mount"}}, {{"type", "ipc"}}, {{"type", "uts"}}});
  if (!facts.network.empty()) list.push_back({{"type", "network"}, {"path", facts.network}});
  if (facts.cgroup_v2) list.push_back({{"type", "cgroup"}});
  if (facts.ids.maps()) list.push_back({{"type", "user"}});
  return list;
}

json linux_part(const Launch& launch, const BundleFacts& facts) {
  json part = {{"namespaces", namespaces(facts)},
               {"devices", json::array()},
               {"resources", resources(launch, facts)},
               {"cgroupsPath", facts.cgroup},
               {"maskedPaths", masked_paths(facts.thermal_folders)},
               {"readonlyPaths", read_only_paths()}};
  if (facts.selinux) part["mountLabel"] = facts.selinux->files;
  if (facts.ids.maps())
    part["uidMappings"] = part["gidMappings"] =
        json::array({{{"containerID", 0}, {"hostID", facts.ids.first}, {"size", IdMap::kCount}}});
  return part;
}

}  // namespace

std::optional<std::string> hostname_of(const workload::Task& task) {
  if (task.network.mode != workload::NetworkMode::kBridge) return std::nullopt;
  return task.id.substr(0, 12);
}

Result<std::string> working_directory_of(const workload::Task& task, const image::Image* image,
                                         const std::string& sandbox_on_host) {
  auto directory = task.working_directory;
  if (directory.empty() && image != nullptr) directory = image->config.working_directory;
  if (directory.empty()) directory = sandbox_inside(image, sandbox_on_host);
  if (directory.starts_with('/')) return directory;
  return fail(ErrorKind::kInvalid, fmt::format("The working directory '{}' is not absolute", directory),
              "write it with a leading '/'", "/working_directory");
}

Result<std::vector<std::string>> arguments_of(const workload::Task& task, const image::Image* image) {
  std::vector<std::string> arguments;
  if (image != nullptr && !task.bypass_entrypoint) arguments = image->config.entrypoint;
  auto command = *task.command;
  if (command.empty() && image != nullptr) command = image->config.command;
  arguments.insert(arguments.end(), command.begin(), command.end());
  if (!arguments.empty() && !arguments.front().empty()) return arguments;
  if (image != nullptr)
    return fail(ErrorKind::kInvalid, fmt::format("Image '{}' names no command to run", image->reference),
                "give the task a command", "/command");
  return fail(ErrorKind::kInvalid, "The task has no command", "give it one", "/command");
}

Result<Specification> make_specification(const Launch& launch, const image::Image* image,
                                         const BundleFacts& facts) {
  DROVER_CHECK_OK(check_mounts(launch.devices));
  DROVER_TRY(auto first_process, process(launch, image, facts));
  json config{{"ociVersion", "1.0.2"},
              {"process", std::move(first_process)},
              {"root", {{"path", facts.root}, {"readonly", launch.task.read_only}}},
              {"mounts", mounts(launch, facts)},
              {"linux", linux_part(launch, facts)}};
  if (const auto hostname = hostname_of(launch.task)) config["hostname"] = *hostname;
  DROVER_CHECK_OK(cdi::apply_edits(edits_of(launch, facts), config));
  for (const auto& [name, value] : own_environment(launch, image, facts.sandbox))
    cdi::set_environment(config, name + "=" + value);
  DROVER_TRY(auto devices, take_devices(config));
  DROVER_TRY(auto binds, take_binds(config));
  if (launch.mps) add_mps(*launch.mps, binds);
  return Specification{to_text(config), std::move(binds), std::move(devices)};
}

std::string without_ids(const std::string& configuration) {
  auto config = json::parse(configuration);
  auto& part = config["linux"];
  for (const char* name : {"uidMappings", "gidMappings"}) part.erase(name);
  auto kept = json::array();
  for (auto& space : part["namespaces"])
    if (space["type"] != "user") kept.push_back(std::move(space));
  part["namespaces"] = std::move(kept);
  return to_text(config);
}

}  // namespace drover::container
