#include "container/launcher.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <nlohmann/json.hpp>
#include <thread>

#include "container/bundle.h"
#include "container/environment.h"
#include "container/image_user.h"
#include "container/shim_watcher.h"
#include "container/task_folder.h"
#include "container/volume_mount.h"
#include "gpu/kernel.h"

namespace drover::container {
namespace {

constexpr auto kRuntimePoll = std::chrono::milliseconds(5);
/// On top of the runtime's own: for mounting and for clearing up after a failure.
constexpr auto kShimMargin = std::chrono::seconds(60);

std::string machine() {
  utsname name{};
  ::uname(&name);
  return static_cast<const char*>(name.machine);
}

int own_oom_score_adj() {
  int value = 0;
  if (const auto text = read_file("/proc/self/oom_score_adj"))
    std::from_chars(text->data(), text->data() + text->size(), value);
  return value;
}

constexpr const char* kEtcHosts = "/etc/hosts";
constexpr const char* kEtcResolver = "/etc/resolv.conf";

bool is_bridged(const Launch& launch) {
  return launch.task.network.mode == workload::NetworkMode::kBridge;
}

/// How programs in the container find names. An image-less task has the machine's own files anyway; what is
/// not on the machine cannot be covered there.
Result<std::vector<ReadOnlyMount>> network_files(const Directory& folder, const Launch& launch) {
  std::vector<ReadOnlyMount> files;
  const bool bridged = is_bridged(launch);
  if (bridged) {
    DROVER_CHECK_OK(replace_file(folder, kHosts, hosts_text(hostname_of(launch.task.id)), 0644));
    const auto machine = read_file(kEtcResolver);
    DROVER_CHECK_OK(replace_file(folder, kResolver, resolver_text(machine.value_or("")), 0644));
  }
  for (const auto& [name, path] : {std::pair(kHosts, kEtcHosts), std::pair(kResolver, kEtcResolver)}) {
    const bool present = ::access(path, F_OK) == 0;
    if (bridged && (launch.task.image || present)) files.push_back({folder.path() + "/" + name, path});
    if (!bridged && launch.task.image && present) files.push_back({path, path});
  }
  return files;
}

User reader_of(const workload::Task& task) {
  return task.owner == task.user.uid ? task.user : user_of(task.owner, task.owner);
}

Status make_sandbox(const Directory& folder, const User& user) {
  DROVER_TRY(const auto sandbox, folder.make_subdirectory(kSandbox, 0700));
  if (::fchown(sandbox.fd(), user.uid, user.gid) != 0 || ::fchmod(sandbox.fd(), 0700) != 0)
    return fail_errno(fmt::format("Failed to give '{}' to its user", sandbox.path()), errno);
  return {};
}

/// A runtime whose shim died has been sent SIGKILL, but may still be at work for a moment: only when it is
/// gone does nobody come into the group any more.
Status end_all(const Directory& folder, const Cgroup& group) {
  const auto deadline = std::chrono::steady_clock::now() + Cgroup::kKillTimeout;
  while (true) {
    DROVER_TRY(const bool lives, runtime_lives(folder));
    DROVER_CHECK_OK(group.kill_all());
    if (!lives) return {};
    if (std::chrono::steady_clock::now() > deadline)
      return fail(ErrorKind::kTimeout, fmt::format("The runtime of '{}' does not end", folder.path()),
                  "look for it with 'lslocks'");
    std::this_thread::sleep_for(kRuntimePoll);
  }
}

}  // namespace

Cgroup Launcher::cgroup(const std::string& task_id) const {
  return Cgroup(hierarchies_, options_.cgroup_parent + "/" + task_id);
}

Status Launcher::prepare(const Directory& folder, const Launch& launch, const std::string& runtime) const {
  std::optional<image::Image> image;
  if (launch.task.image) {
    DROVER_TRY(image, options_.prepare_image(*launch.task.image, reader_of(launch.task), launch.progress));
  }
  auto user = launch.task.user;
  if (image) {
    DROVER_TRY(user, user_in_image(launch.task, *image));
  }
  DROVER_CHECK_OK(clear(folder, launch.task.id));
  // This attempt has not begun, so what is there tells of the one before.
  DROVER_CHECK_OK(folder.remove_tree(kStatusFile));
  DROVER_CHECK_OK(make_sandbox(folder, user));
  DROVER_CHECK_OK(fetch(folder, launch, user));
  for (const char* name : {kUpper, kWork, kRoot})
    DROVER_CHECK_OK(folder.make_subdirectory(name, 0755).map([](auto&&) {}));
  DROVER_CHECK_OK(folder.make_subdirectory(kRuntimeState, 0700).map([](auto&&) {}));
  DROVER_CHECK_OK(write_bundle(folder, launch, image ? &*image : nullptr, user));

  Order order;
  order.task_id = launch.task.id;
  order.attempt = launch.attempt;
  order.runtime = runtime;
  order.cgroup = options_.cgroup_parent + "/" + launch.task.id;
  order.uid = user.uid;
  order.gid = user.gid;
  order.grace = launch.task.grace;
  order.start_timeout = options_.start_timeout;
  order.root = {image ? image->layers : std::vector<std::string>{}, launch.task.read_only, options_.hidden};
  order.logs = options_.logs;
  DROVER_TRY(order.volumes, plan_volumes(launch, image ? &*image : nullptr, folder.path() + "/" + kSandbox));
  order.volume_user = launch.task.user.uid == user.uid ? launch.task.user : user;
  if (is_bridged(launch)) {
    DROVER_TRY(order.network, plan_of(launch.task.network, launch.host_ports));
  }
  return replace_file(folder, kOrderFile, encode(order));
}

/// Once in a task's life: a later attempt goes on with the sandbox as it is. As on the host, the user's
/// groups count, which a container with an image does not have.
Status Launcher::fetch(const Directory& folder, const Launch& launch, const User& user) const {
  const auto& files = launch.task.fetch;
  if (files.empty()) return {};
  // An attempt that was started had all its files, and its successors find them in the same sandbox.
  for (int before = 0; before < launch.attempt; ++before)
    if (folder.exists(started_file(before))) return {};
  DROVER_TRY(const auto sandbox, folder.subdirectory(kSandbox));
  const auto& owner = launch.task.user.uid == user.uid ? launch.task.user : user;
  return fetch_all({options_.executable, options_.fetch_caches, options_.fetching}, files, sandbox, owner,
                   launch.progress, launch.stop);
}

Status Launcher::write_bundle(const Directory& folder, const Launch& launch, const image::Image* image,
                              const User& user) const {
  BundleFacts facts;
  facts.root = folder.path() + "/" + kRoot;
  facts.sandbox = folder.path() + "/" + kSandbox;
  facts.cgroup = options_.cgroup_parent + "/" + launch.task.id;
  facts.user = user;
  if (gets_driver_volume(launch, image)) {
    DROVER_TRY(facts.driver_volume, launch.driver.volume());
  }
  if (gets_driver_files(launch, image)) {
    DROVER_TRY(facts.driver_files, launch.driver.files());
  }
  DROVER_TRY(facts.files, network_files(folder, launch));
  facts.volume_folder = folder.path() + "/" + kVolumes;
  DROVER_TRY(facts.volumes, plan_volumes(launch, image, facts.sandbox));
  if (is_bridged(launch)) facts.network = folder.path() + "/" + kNetwork;
  facts.machine = machine();
  facts.cgroup_v2 = cgroup_mode(hierarchies_) == "v2";
  facts.cpuset = gpu::format_cpu_list(cpus_to_pin(launch.cpus, usable_cpus(hierarchies_)));
  facts.limit_swap = can_limit_swap(hierarchies_);
  facts.oom_score_adj = own_oom_score_adj();
  DROVER_TRY(const auto specification, make_specification(launch, image, facts));
  DROVER_TRY(const auto bundle, folder.make_subdirectory(kBundle, 0700));
  return replace_file(bundle, "config.json",
                      specification.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

Result<Launcher::Outcome> Launcher::start(const Directory& folder, const std::string& task_id) const {
  DROVER_TRY(auto shim, spawn_shim(options_.executable, folder.path()));
  const auto word = await_word(shim, options_.start_timeout + kShimMargin);
  if (word) return Outcome{std::move(shim.process), *word};
  if (word.error().kind == ErrorKind::kTimeout)
    ::syscall(SYS_pidfd_send_signal, shim.process.get(), SIGKILL, nullptr, 0);
  DROVER_CHECK_OK(await_process(shim.process.get(), kShimMargin));
  DROVER_CHECK_OK(clear(folder, task_id));
  return Failure(word.error());
}

Status Launcher::clear(const Directory& folder, const std::string& task_id) const {
  const auto group = cgroup(task_id);
  DROVER_CHECK_OK(end_all(folder, group));
  group.remove();
  for (const char* name : {kOrderFile, kRuntimeLock, kPidFile, kRuntimeLog, kBundle, kUpper, kWork, kRoot,
                           kRuntimeState, kNetwork, kVolumes, kHosts, kResolver})
    DROVER_CHECK_OK(folder.remove_tree(name));
  return {};
}

}  // namespace drover::container
