#include "container/oci_launcher.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "base/ranges.h"
#include "container/bundle.h"
#include "container/driver_check.h"
#include "container/environment.h"
#include "container/exec_mark.h"
#include "container/hidden_paths.h"
#include "container/image_choice.h"
#include "container/image_user.h"
#include "container/init.h"
#include "container/launch_spec.h"
#include "container/own_places.h"
#include "container/pull_clock.h"
#include "container/root_mount.h"
#include "container/shim_watcher.h"
#include "container/status_file.h"
#include "container/task_folder.h"
#include "container/volume_mount.h"
#include "driver/guard.h"
#include "share/pages.h"

namespace drover::container {
namespace {

constexpr auto kRuntimePoll = std::chrono::milliseconds(5);
constexpr auto kTrialTimeout = std::chrono::seconds(20);
constexpr auto kTryIdsAgain = std::chrono::minutes(1);
constexpr const char* kTrials = "trials";
constexpr const char* kTrialLayer = "layer";
constexpr const char* kMounts = "mounts";
constexpr mode_t kMountsMode = 0711;
constexpr mode_t kTrialMode = 0700;

constexpr const char* kEtcHosts = "/etc/hosts";
constexpr const char* kEtcResolver = "/etc/resolv.conf";

bool is_bridged(const Launch& launch) {
  return launch.task.network.mode == workload::NetworkMode::kBridge;
}

/// How programs in the container find names. An image-less task has the machine's own files anyway; what is
/// not on the machine cannot be covered there.
Result<std::vector<HostMount>> network_files(const Directory& folder, const Launch& launch) {
  std::vector<HostMount> files;
  const bool bridged = is_bridged(launch);
  if (bridged) {
    DROVER_CHECK_OK(replace_file(folder, kHosts, hosts_text(*hostname_of(launch.task)), 0644));
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

Launch trial_launch(const std::string& task_id) {
  Launch launch;
  launch.task.id = task_id;
  launch.task.command = {"true"};
  launch.task.working_directory = "/";
  launch.task.user.name = "root";
  launch.task.resources.memory_bytes = 0;
  return launch;
}

/// A runtime whose shim died has been sent SIGKILL, but may still be at work for a moment, and so may those
/// that join: only when they are gone does nobody come into the group any more, as long as what is returned
/// is held.
Result<UniqueFd> end_all(const Directory& folder, const Cgroup& group) {
  const auto deadline = std::chrono::steady_clock::now() + Cgroup::kKillTimeout;
  while (true) {
    DROVER_TRY(const bool lives, runtime_lives(folder));
    DROVER_TRY(auto alone, lock_out_joining(folder));
    DROVER_CHECK_OK(group.kill_all());
    if (!lives && alone.valid()) return alone;
    if (std::chrono::steady_clock::now() > deadline)
      return fail(ErrorKind::kTimeout, fmt::format("The runtime of '{}' does not end", folder.path()),
                  "look for it with 'lslocks'");
    std::this_thread::sleep_for(kRuntimePoll);
  }
}

}  // namespace

Result<OciReport> try_oci(const OciOptions& options) {
  DROVER_TRY(const auto launcher, OciLauncher::create(options));
  return OciReport{launcher->runtimes(), launcher->ids_work()};
}

OciLauncher::OciLauncher(OciOptions options, std::vector<Hierarchy> hierarchies)
    : Launcher(std::move(options.launching)),
      wanted_(std::move(options.runtime)),
      hierarchies_(std::move(hierarchies)),
      ids_trouble_([warn = std::move(options.warn)](const std::string& why) {
        if (warn)
          warn(fmt::format("Root of containers is the machine's root, and no user of its own: {}", why));
      }) {}

Result<std::unique_ptr<OciLauncher>> OciLauncher::create(OciOptions options) {
  DROVER_TRY(options.launching, with_state(std::move(options.launching), options.state));
  DROVER_TRY(auto hierarchies, find_hierarchies());
  // A shim mounts over the first. A runtime goes into the second, as the daemon sees it, to join a container.
  DROVER_CHECK_OK(
      Directory::create(fmt::format("{}/{}/{}", options.launching.state, kMounts, kRootMount), kMountsMode)
          .map([](auto&&) {}));
  std::unique_ptr<OciLauncher> made(new OciLauncher(std::move(options), std::move(hierarchies)));
  made->clear_trials();
  made->runtimes_ = made->try_here();
  return made;
}

void OciLauncher::clear_trials() const {
  const auto trials = Directory::open(options_.state + "/" + kTrials);
  if (!trials) return;
  for (const auto& name : trials->list().value_or(std::vector<std::string>{})) {
    if (const auto folder = trials->subdirectory(name)) (void)clear(*folder, name);
    (void)trials->remove_tree(name);
  }
}

Status OciLauncher::run_trial(const std::string& runtime, const IdMap& ids) const {
  DROVER_TRY(const auto trials, Directory::create(options_.state + "/" + kTrials, kTrialMode));
  const auto task_id = fmt::format("trial{}-{}", ids.maps() ? "-ids" : "", ::getpid());
  DROVER_CHECK_OK(trials.remove_tree(task_id));
  DROVER_TRY(const auto folder, trials.make_subdirectory(task_id, kTrialMode));
  auto launch = trial_launch(task_id);
  image::Image image;
  if (ids.maps()) {
    DROVER_TRY(const auto layer, folder.make_subdirectory(kTrialLayer));
    image.layers = {layer.path()};
    launch.task.image = kTrialLayer;
    launch.task.command = {kInitInside};  // the one program in it; it says how it is used
  }
  const int expected = ids.maps() ? kInitUsageStatus : 0;
  const Chosen chosen{ids.maps() ? &image : nullptr, launch.task.user, true, ids};
  const auto ran = prepare_chosen(runtime, folder, launch, chosen).and_then([&]() -> Status {
    DROVER_TRY(const auto outcome, start(folder, task_id));
    DROVER_CHECK_OK(await_process(outcome.shim.get(), kTrialTimeout));
    DROVER_TRY(const auto status, read_status(folder));
    if (status && status->ending && status->ending->exit_status == expected) return {};
    return fail(ErrorKind::kUnavailable, "It started a container, but the container failed");
  });
  DROVER_CHECK_OK(clear(folder, task_id));
  DROVER_CHECK_OK(trials.remove_tree(task_id));
  return ran;
}

std::vector<RuntimeReport> OciLauncher::try_here() const {
  return try_runtimes(wanted_, [this](const std::string& path) { return run_trial(path, {}); });
}

Status OciLauncher::ids_work() const {
  DROVER_TRY(const auto path, runtime());
  const std::lock_guard lock(ids_mutex_);
  const auto now = std::chrono::steady_clock::now();
  if (!ids_work_ || (!*ids_work_ && now - ids_tried_at_ > kTryIdsAgain)) {
    ids_work_ = run_trial(path, options_.ids.maps() ? options_.ids : IdMap{IdMap::kUsualFirst});
    ids_tried_at_ = now;
    ids_trouble_.report(*ids_work_);
  }
  return *ids_work_;
}

IdMap OciLauncher::ids_of(const Launch& launch, const User& user) const {
  if (!options_.ids.maps() || !launch.task.image || user.uid != 0 || !options_.ids.holds(user)) return {};
  // On the machine's network only its root may take these.
  constexpr int kFirstForAll = 1024;
  const bool wants_roots_port = !is_bridged(launch) && std::ranges::any_of(launch.host_ports, [](int port) {
    return port > 0 && port < kFirstForAll;
  });
  return !wants_roots_port && ids_work() ? options_.ids : IdMap{};
}

std::vector<RuntimeReport> OciLauncher::runtimes() const {
  const std::lock_guard lock(runtimes_mutex_);
  return runtimes_;
}

Result<std::string> OciLauncher::runtime() const {
  const std::lock_guard lock(runtimes_mutex_);
  const auto works = [this] { return !runtimes_.empty() && runtimes_.back().works(); };
  if (!works() || ::access(runtimes_.back().path.c_str(), X_OK) != 0) runtimes_ = try_here();
  if (!works()) return Failure(no_runtime(runtimes_));
  return runtimes_.back().path;
}

Cgroup OciLauncher::cgroup(const std::string& task_id) const {
  return Cgroup(hierarchies_, options_.cgroup_parent + "/" + task_id);
}

Result<std::unique_ptr<ExecProcess>> OciLauncher::exec(const Directory& folder, const std::string& task_id,
                                                       const ExecRequest& request) const {
  DROVER_TRY(const auto runtime_path, runtime_of(folder));
  return start_exec(folder, task_id, {options_.executable, runtime_path}, cgroup(task_id), request);
}

/// The one that made the container: another one knows nothing of it.
Result<std::string> OciLauncher::runtime_of(const Directory& folder) const {
  const auto text = folder.read(kLaunchSpecFile);
  if (const auto spec = text ? decode_launch_spec(*text) : Result<LaunchSpec>(Failure(text.error())))
    if (::access(spec->runtime.c_str(), X_OK) == 0) return spec->runtime;
  return runtime();
}

void OciLauncher::end_forgotten_execs(const Directory&, const std::string& task_id) const {
  container::end_forgotten_execs(cgroup(task_id));
}

Status OciLauncher::prepare(const Directory& folder, const Launch& launch) const {
  DROVER_TRY(const auto runtime_path, runtime());
  return prepare_with(runtime_path, folder, launch);
}

Status OciLauncher::prepare_with(const std::string& runtime, const Directory& folder,
                                 const Launch& launch) const {
  if (launch.task.privileged)
    return fail(ErrorKind::kUnsupported, "Only containers of a Docker Engine can be privileged",
                "serve with --containerizers docker,oci", "/privileged");
  std::optional<image::Image> image;
  bool compat = true;
  if (launch.task.image) {
    DROVER_TRY(const auto reader, reader_of(launch.task));
    const PullClock clock(launch.task.pull_timeout, launch.stop);
    DROVER_TRY(image, clock.judge(options_.prepare_image(
                          *launch.task.image, reader,
                          {launch.task.pull, launch.progress, clock.token(), variant_chooser(launch)})));
    DROVER_TRY(compat, check_driver(launch, *image));
  }
  Chosen chosen{image ? &*image : nullptr, launch.task.user, compat, {}};
  if (image) {
    DROVER_TRY(chosen.user, user_in_image(launch.task, *image));
  }
  chosen.ids = ids_of(launch, chosen.user);
  return prepare_chosen(runtime, folder, launch, chosen);
}

Status OciLauncher::prepare_chosen(const std::string& runtime, const Directory& folder, const Launch& launch,
                                   const Chosen& chosen) const {
  const auto& [image, user, compat, ids] = chosen;
  DROVER_CHECK_OK(clear(folder, launch.task.id));
  // This attempt has not begun, so what is there tells of the one before.
  DROVER_CHECK_OK(folder.remove_tree(kStatusFile));
  DROVER_CHECK_OK(fill_sandbox(folder, launch, user));
  for (const char* name : {kUpper, kWork})
    DROVER_CHECK_OK(folder.make_subdirectory(name, 0755).map([](auto&&) {}));
  DROVER_CHECK_OK(folder.make_subdirectory(kRuntimeState, 0700).map([](auto&&) {}));
  DROVER_TRY(auto spec, spec_of(folder, launch, image, user));
  spec.mounts = options_.state + "/" + kMounts;
  DROVER_CHECK_OK(write_bundle(folder, launch, chosen, spec));
  spec.runtime = runtime;
  spec.root.read_only = launch.task.read_only;
  if (image != nullptr) spec.root.layers = image->layers;
  if (is_labelled(find_security_modules(), image)) {
    spec.root.label = selinux_labels(launch.task.id).files;
    DROVER_TRY(const auto sandbox, folder.subdirectory(kSandbox));
    DROVER_CHECK_OK(label_folder(sandbox, spec.root.label));
  }
  if (is_bridged(launch)) {
    DROVER_TRY(spec.network, plan_of(launch.task.network, launch.host_ports));
  }
  DROVER_CHECK_OK(limit_memory(folder, launch));
  return replace_file(folder, kLaunchSpecFile, encode(spec));
}

Result<std::vector<HostMount>> OciLauncher::place_guard_on_host(const Directory& folder,
                                                                const Launch& launch) {
  DROVER_CHECK_OK(make_pages(folder, launch));
  DROVER_TRY(const auto pages, folder.subdirectory(share::kPagesFolder));
  const auto inside = driver::kGuardOnHost + "/";
  for (const auto& cover : launch.driver.on_host)
    if (cover.destination.starts_with(inside))
      DROVER_CHECK_OK(pages.write(cover.destination.substr(inside.size()), ""));
  DROVER_CHECK_OK(Directory::create(driver::kGuardOnHost).map([](auto&&) {}));
  std::vector<HostMount> mounts{
      {pages.path(), driver::kGuardOnHost},
      {fmt::format("{}/{}", pages.path(), share::kAccountPage), inside + share::kAccountPage, true}};
  mounts.insert(mounts.end(), launch.driver.on_host.begin(), launch.driver.on_host.end());
  return mounts;
}

Status OciLauncher::limit_memory(const Directory& folder, const Launch& launch) const {
  if (!launch.limit_memory) return {};
  auto limited = set_memory_limit(folder, launch);
  if (limited || launch.task.resources.share_by == workload::ShareBy::kKernel) return limited;
  unlimit_memory(folder, launch.task.id);
  return folder.remove_tree(kLimitedGpus);
}

Status OciLauncher::set_memory_limit(const Directory& folder, const Launch& launch) const {
  const auto group = cgroup(launch.task.id);
  DROVER_TRY(const auto directory, group.unified_folder());
  // First, so that clear() knows whatever happens in between.
  DROVER_CHECK_OK(replace_file(folder, kLimitedGpus, fmt::format("{}\n", fmt::join(launch.gpu_uuids, "\n"))));
  DROVER_CHECK_OK(Cgroup(hierarchies_, options_.cgroup_parent).create());
  DROVER_CHECK_OK(group.create());
  return launch.limit_memory(directory);
}

Status OciLauncher::change_memory_limit(const Directory& folder, const std::string& task_id,
                                        const MemoryLimiter& change) const {
  if (!folder.exists(kLimitedGpus)) return {};
  DROVER_TRY(const auto directory, cgroup(task_id).unified_folder());
  return change(directory);
}

void OciLauncher::unlimit_memory(const Directory& folder, const std::string& task_id) const {
  const auto text = folder.read(kLimitedGpus);
  const auto directory = cgroup(task_id).unified_folder();
  if (!text || !directory || !options_.unlimit_memory) return;
  std::vector<std::string> gpus;
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);) gpus.push_back(line);
  options_.unlimit_memory(*directory, gpus);
}

/// The files of the machine, which a task without an image has, carry labels for its own users.
bool OciLauncher::is_labelled(const SecurityModules& modules, const image::Image* image) const {
  return options_.selinux && modules.selinux_enforcing && image != nullptr;
}

Status OciLauncher::write_bundle(const Directory& folder, const Launch& launch, const Chosen& chosen,
                                 LaunchSpec& spec) const {
  const auto& [image, user, compat, ids] = chosen;
  BundleFacts facts;
  facts.compat = compat;
  facts.ids = ids;
  facts.root = spec.mounts + "/" + kRootMount;
  facts.sandbox = folder.path() + "/" + kSandbox;
  facts.init = options_.init;
  facts.filter = user.uid == 0 ? options_.filters.roots : options_.filters.users;
  facts.cgroup = options_.cgroup_parent + "/" + launch.task.id;
  facts.user = user;
  if (gets_driver_volume(launch, image)) {
    DROVER_TRY(facts.driver_volume, launch.driver.volume());
  }
  if (gets_driver_files(launch, image)) {
    DROVER_TRY(facts.driver_files, launch.driver.files());
  }
  if (is_guarded(launch, image)) {
    DROVER_TRY(facts.guard,
               image != nullptr ? make_share_pages(folder, launch) : place_guard_on_host(folder, launch));
  }
  if (launch.mps && image == nullptr) DROVER_CHECK_OK(Directory::create(kMpsInTask).map([](auto&&) {}));
  DROVER_TRY(facts.files, network_files(folder, launch));
  if (is_bridged(launch)) facts.network = folder.path() + "/" + kNetwork;
  facts.cgroup_v2 = cgroup_mode(hierarchies_) == "v2";
  facts.cpuset = format_ranges(cpus_to_pin(launch.cpus, usable_cpus(hierarchies_)));
  facts.limit_swap = can_limit_swap(hierarchies_);
  const auto modules = find_security_modules();
  if (modules.apparmor == SecurityModules::AppArmor::kReady) facts.apparmor_profile = kAppArmorProfile;
  if (is_labelled(modules, image)) facts.selinux = selinux_labels(launch.task.id);
  facts.thermal_folders = thermal_folders();
  facts.machine_memory_bytes = memory_of_machine();
  facts.oom_score_adj = oom_score_adj_of(launch.task);
  DROVER_TRY(auto specification, make_specification(launch, image, facts));
  // The hooks of root that is not the machine's read it; nobody else comes into the task's folder.
  DROVER_TRY(const auto bundle, folder.make_subdirectory(kBundle, 0755));
  DROVER_CHECK_OK(replace_file(bundle, kConfiguration, specification.configuration, kConfigurationMode));
  spec.ids = ids;
  spec.binds = std::move(specification.binds);
  spec.devices = std::move(specification.devices);
  return {};
}

Status OciLauncher::clear(const Directory& folder, const std::string& task_id) const {
  const auto group = cgroup(task_id);
  DROVER_TRY(const auto alone, end_all(folder, group));
  unlimit_memory(folder, task_id);
  group.remove();
  for (const char* name : {kLaunchSpecFile, kLimitedGpus, kRuntimeLock, kPidFile, kRuntimeLog, kBundle,
                           kUpper, kWork, kRuntimeState, kNetwork, kVolumes, kHosts, kResolver, kJoinLock,
                           kInputSocket, kConsoleSocket, share::kPagesFolder})
    DROVER_CHECK_OK(folder.remove_tree(name));
  return {};
}

}  // namespace drover::container
