#include "container/docker/docker_launcher.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "base/ranges.h"
#include "container/bundle.h"
#include "container/docker/create_body.h"
#include "container/docker/docker_exec.h"
#include "container/docker/docker_supervisor.h"
#include "container/docker/engine_mounts.h"
#include "container/docker/engine_volumes.h"
#include "container/docker/image_probe.h"
#include "container/docker/registry_auth.h"
#include "container/driver_check.h"
#include "container/environment.h"
#include "container/exec_mark.h"
#include "container/image_choice.h"
#include "container/image_user.h"
#include "container/own_places.h"
#include "container/pull_clock.h"
#include "container/task_folder.h"
#include "image/registry/login.h"
#include "image/registry/name.h"

namespace drover::container::docker {
namespace {

using nlohmann::json;

constexpr std::size_t kMostImages = 256;

/// The engine looks at nodes of the host to learn the numbers: these have the ones that were decided on,
/// whatever lies in /dev.
Status make_devices(const Directory& folder, const Launch& launch) {
  const auto nodes = device_nodes_of(launch);
  if (nodes.empty()) return {};
  DROVER_TRY(const auto devices, folder.make_subdirectory(kDevices, 0700));
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const auto name = std::to_string(i);
    if (::mknodat(devices.fd(), name.c_str(), S_IFCHR | nodes[i].mode,
                  ::makedev(nodes[i].major, nodes[i].minor)) != 0 ||
        ::fchmodat(devices.fd(), name.c_str(), nodes[i].mode, 0) != 0)
      return fail_errno(fmt::format("Failed to make a node for '{}'", nodes[i].path), errno);
  }
  return {};
}

/// The engine has no credentials of its own: it shows the registry what the task's reader has.
Status pull(const Engine& engine, const std::string& reference, const Launch& launch, const User& reader) {
  const auto name = image::parse_registry_name(reference);
  image::RegistryLogin login;
  if (name) {
    DROVER_TRY(login, image::read_login(reader, name->host));
  }
  const auto authorization = name ? registry_auth(login, name->host) : "";
  const PullClock clock(launch.task.pull_timeout, launch.stop);
  auto pulled = clock.judge(engine.pull(reference, authorization, launch.progress, clock.token()));
  if (!pulled && pulled.error().kind == ErrorKind::kPermissionDenied && name) {
    pulled.error().hint = fmt::format("'{}' has to log in with 'docker login {}'", reader.name, name->host);
    if (!login.note.empty()) pulled.error().hint = login.note;
  }
  return pulled;
}

}  // namespace

DockerLauncher::DockerLauncher(DockerOptions options, std::vector<Hierarchy> hierarchies)
    : Launcher(std::move(options.launching)),
      socket_(std::move(options.socket)),
      patience_(options.patience),
      hierarchies_(std::move(hierarchies)) {}

Result<std::unique_ptr<DockerLauncher>> DockerLauncher::create(DockerOptions options) {
  DROVER_TRY(options.launching, with_state(std::move(options.launching), options.state));
  DROVER_TRY(auto hierarchies, find_hierarchies());
  return std::unique_ptr<DockerLauncher>(new DockerLauncher(std::move(options), std::move(hierarchies)));
}

std::map<std::string, std::string> DockerLauncher::labels_of(const std::string& task_id) const {
  return {{kTaskLabel, task_id}, {kStateLabel, options_.state}};
}

/// Of an index an engine takes what its platform matches. Where the entries are variants, it is asked for the
/// one that fits, by its digest.
Result<std::string> DockerLauncher::chosen_image(const Launch& launch) const {
  auto reference = *launch.task.image;
  if (!options_.image_variants) return reference;
  DROVER_TRY(const auto reader, reader_of(launch.task));
  image::LookupOptions lookup{.ask_registries = true, .newest = launch.task.pull == PullPolicy::kAlways};
  lookup.registries_only = true;
  lookup.stop = launch.stop;
  for (int level = 0; level <= image::kMostVariantLevels; ++level) {
    const auto variants = options_.image_variants(reference, reader, lookup);
    // The engine may reach what we do not: a mirror, or a registry that only it trusts.
    if (!variants || variants->empty()) return reference;
    const auto chosen = variant_chooser(launch)(reference, *variants);
    if (!chosen)
      return Failure(
          context(chosen.error(), fmt::format("Failed to prepare image '{}'", *launch.task.image)));
    reference = variants->at(*chosen).reference;
  }
  return fail(ErrorKind::kInvalid, fmt::format("The variants of image '{}' nest more than {} levels deep",
                                               *launch.task.image, image::kMostVariantLevels));
}

Result<ImageFacts> DockerLauncher::image_of(const Engine& engine, const Launch& launch) const {
  const auto& named = *launch.task.image;
  std::optional<ImageFacts> present;
  if (launch.task.pull != PullPolicy::kAlways) {
    DROVER_TRY(present, engine.inspect_image(named));
    if (present) return std::move(*present);
  }
  DROVER_TRY(const auto reference, chosen_image(launch));
  if (reference != named) {  // a digest: there is nothing newer to pull
    DROVER_TRY(present, engine.inspect_image(reference));
    if (present) return std::move(*present);
  }
  if (launch.task.pull == PullPolicy::kNever)
    return fail(ErrorKind::kNotFound,
                fmt::format("The Docker Engine does not have the image '{}'", reference),
                "bring it there with 'docker pull', or let the task pull it", "/image");
  DROVER_TRY(const auto reader, reader_of(launch.task));
  DROVER_CHECK_OK(pull(engine, reference, launch, reader));
  DROVER_TRY(present, engine.inspect_image(reference));
  if (present) return std::move(*present);
  return fail(ErrorKind::kUnavailable,
              fmt::format("The Docker Engine pulled '{}' and does not have it", reference));
}

std::shared_ptr<SeenOfImage> DockerLauncher::seen_of(const std::string& image_id) const {
  const std::lock_guard lock(seen_mutex_);
  if (seen_.size() >= kMostImages) seen_.clear();
  auto& seen = seen_[image_id];
  if (!seen) seen = std::make_shared<SeenOfImage>();
  return seen;
}

Result<std::string> DockerLauncher::body_of(const Directory& folder, const Launch& launch,
                                            const image::Image& image, const Findings& found) const {
  BodyFacts facts;
  facts.image_id = image.digest;
  facts.compat = found.compat;
  facts.init = options_.init;
  facts.entered = found.entered;
  facts.state = options_.state;
  facts.sandbox = folder.path() + "/" + kSandbox;
  facts.device_folder = folder.path() + "/" + kDevices;
  if (gets_driver_volume(launch, &image)) {
    DROVER_TRY(facts.driver_volume, launch.driver.volume());
    if (!launch.limits.empty()) {
      DROVER_TRY(facts.share_pages, make_share_pages(folder, launch));
    }
  }
  facts.user = found.user;
  DROVER_TRY(facts.volumes, plan_volumes(launch, &image, facts.sandbox));
  facts.volume_folder = folder.path() + "/" + kVolumes;
  facts.cpuset = format_ranges(cpus_to_pin(launch.cpus, usable_cpus(hierarchies_)));
  facts.limit_swap = can_limit_swap(hierarchies_);
  facts.machine_memory_bytes = memory_of_machine();
  facts.oom_score_adj = oom_score_adj_of(launch.task);
  facts.logs = options_.logs;
  DROVER_TRY(const auto body, make_create_body(launch, image, facts));
  return to_text(body);
}

Result<DockerLauncher::Findings> DockerLauncher::inspect_image(
    const Engine& engine, const Launch& launch, const image::Image& image,
    const std::vector<std::string>& image_volumes) const {
  const auto& task_id = launch.task.id;
  ImageProbe probe(engine, image.digest, container_name(task_id) + "-look", labels_of(task_id),
                   seen_of(image.digest));
  Findings found;
  DROVER_TRY(found.compat, check_driver(launch, image, [&](const auto& folder, const auto& wanted) {
               return probe.list(folder, wanted);
             }));
  DROVER_TRY(const auto passwd, probe.read("/etc/passwd"));
  DROVER_TRY(const auto group, probe.read("/etc/group"));
  DROVER_TRY(found.user, user_in_image(launch.task, image.config.user, passwd, group));
  WantedMounts wanted{{}, image_volumes, std::nullopt, image.reference};
  if (launch.mps) wanted.mps = kMpsInTask;
  DROVER_TRY(wanted.volumes, plan_volumes(launch, &image, ""));
  if (gets_driver_volume(launch, &image)) {
    DROVER_TRY(const auto driver, launch.driver.volume());
    wanted.driver_volume = driver.front().destination;
  }
  const auto walk = [&](const std::string& path) { return probe.walk(path); };
  DROVER_TRY(const auto mounts, MountCheck::make(wanted, walk));
  found.entered = "/";
  const auto& own = image.config.working_directory;
  if (!launch.task.working_directory.empty() || !own.starts_with('/')) return found;
  DROVER_TRY(const auto path, probe.walk(own));
  if (mounts.stays_in_image(path)) found.entered = own;
  return found;
}

Status DockerLauncher::prepare(const Directory& folder, const Launch& launch) const {
  if (!launch.task.image)
    return fail(ErrorKind::kInvalid, "A task without an image cannot run in a Docker Engine",
                "name an image, or serve with --containerizers docker,oci", "/image");
  if (!launch.devices.empty())
    return fail(ErrorKind::kUnsupported, "CDI devices cannot be given to containers of a Docker Engine",
                "ask for the container type MESOS, and serve with --containerizers docker,oci", "/devices");
  if (launch.task.takes_input)
    return fail(ErrorKind::kUnsupported, "A task in a Docker Engine takes no input and has no terminal",
                "serve with --containerizers docker,oci, or use 'drover exec -it' once it runs", "/stdin");
  if (launch.limit_memory && launch.task.resources.share_by == workload::ShareBy::kKernel)
    return fail(ErrorKind::kUnsupported,
                "The driver cannot limit the memory of containers of a Docker Engine: it makes their control "
                "groups only when they start",
                "serve with --containerizers docker,oci");
  DROVER_TRY(const auto engine, Engine::find(socket_));
  DROVER_CHECK_OK(clear(folder, launch.task.id));
  DROVER_TRY(const auto found, image_of(engine, launch));
  const image::Image image{*launch.task.image, found.id, found.config, {}};
  DROVER_TRY(const auto seen, inspect_image(engine, launch, image, found.volumes));
  const auto& user = seen.user;
  // This attempt has not begun, so what is there tells of the one before.
  DROVER_CHECK_OK(folder.remove_tree(kStatusFile));
  DROVER_CHECK_OK(fill_sandbox(folder, launch, user));
  DROVER_CHECK_OK(make_devices(folder, launch));
  DROVER_TRY(auto spec, spec_of(folder, launch, &image, user));
  DockerSpec docker{socket_, engine.api_version(), "", patience_};
  DROVER_TRY(docker.body, body_of(folder, launch, image, seen));
  spec.docker = std::move(docker);
  return replace_file(folder, kLaunchSpecFile, encode(spec));
}

/// The launch specification stays until nothing of the task is left in the engine: it says that there is
/// something to look for.
Status DockerLauncher::clear(const Directory& folder, const std::string& task_id) const {
  unmount_volumes(folder);
  if (folder.exists(kLaunchSpecFile)) {
    DROVER_TRY(const auto engine, Engine::find(socket_));
    while (true) {
      DROVER_TRY(const auto left, engine.find_containers(labels_of(task_id)));
      if (left.empty()) break;
      for (const auto& id : left) DROVER_CHECK_OK(engine.remove(id));
    }
  }
  for (const char* name : {kDevices, kVolumes, share::kPagesFolder, kLaunchSpecFile})
    DROVER_CHECK_OK(folder.remove_tree(name));
  return {};
}

std::optional<Cgroup> DockerLauncher::cgroup_of(const ContainerState& container) const {
  if (!container.running || container.pid <= 0) return std::nullopt;
  const auto groups = read_file(fmt::format("/proc/{}/cgroup", container.pid));
  const auto group = groups ? group_of_container(*groups, container.id) : std::nullopt;
  if (!group) return std::nullopt;
  return Cgroup(hierarchies_, *group);
}

Result<std::unique_ptr<ExecProcess>> DockerLauncher::exec(const Directory&, const std::string& task_id,
                                                          const ExecRequest& request) const {
  DROVER_TRY(const auto engine, Engine::find(socket_));
  DROVER_TRY(const auto container, engine.inspect(container_name(task_id)));
  if (!container || !container->running)
    return fail(ErrorKind::kConflict, fmt::format("Task '{}' does not run", task_id),
                "'drover ps' shows what does");
  return start_docker_exec(engine, *container, cgroup_of(*container), request);
}

void DockerLauncher::end_forgotten_execs(const Directory&, const std::string& task_id) const {
  const auto engine = Engine::find(socket_);
  if (!engine) return;
  const auto container = engine->inspect(container_name(task_id));
  if (!container || !*container) return;
  if (const auto cgroup = cgroup_of(**container)) container::end_forgotten_execs(*cgroup);
}

}  // namespace drover::container::docker
