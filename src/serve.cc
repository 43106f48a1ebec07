#include "serve.h"

#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/post.hpp>
#include <chrono>
#include <filesystem>

#include "base/files.h"
#include "base/log_once.h"
#include "base/periodic_tasks.h"
#include "base/process.h"
#include "busy_tasks.h"
#include "cdi/write.h"
#include "cdi_file.h"
#include "container/cgroup.h"
#include "container/mps_book.h"
#include "container/network/listening_ports.h"
#include "container/part_book.h"
#include "container/shim_containerizer.h"
#include "container/task_folder.h"
#include "containerizers.h"
#include "daemon.h"
#include "engine/images.h"
#include "gpu/inventory_watch.h"
#include "gpu/usage_sampler.h"
#include "group_shares.h"
#include "hardware.h"
#include "image/store.h"
#include "log_setup.h"
#include "machine_parts.h"
#include "node.h"
#include "placement/decision.h"
#include "serve_cluster.h"
#include "share/watch.h"
#include "share_facts.h"
#include "store/state_folder.h"
#include "strangers.h"
#include "task_processes.h"
#include "task_space.h"
#include "unused.h"

namespace drover {
namespace {

constexpr std::chrono::seconds kSharesPause{5};

share::TimeShares time_shares_of(std::string_view time) {
  using enum share::TimeShares;
  return time == "strict" ? kStrict : time == "free" ? kFree : kLend;
}

/// The daemon of one machine: with its GPUs, its containers and its images.
class MachineDaemon {
 public:
  MachineDaemon(const cli::ServeOptions& options, Hardware hardware, image::Store images)
      : options_(options),
        hardware_(std::make_shared<const Hardware>(std::move(hardware))),
        images_(std::move(images)),
        attributes_(options.attributes) {
    attributes_.merge(host_attributes(hardware_->host().cpu));
  }

  Status start(Opened opened) {
    DROVER_TRY(books_.parts,
               container::PartBook::open(options_.state, std::make_unique<MachineParts>(hardware_)));
    DROVER_TRY(books_.mps,
               container::MpsBook::open(options_.state, std::make_unique<GroupShares>(group_shares_)));
    watch_gpus();
    watch_shares();
    const auto machine = current_machine();
    engine::NodeView view;
    view.name = machine.name;
    view.disk_bytes = hardware_->host().disk_bytes;
    DROVER_TRY(const auto hierarchies, container::find_hierarchies());
    view.cgroups = container::cgroup_mode(hierarchies);
    leave_processes_to_the_machine(hierarchies);
    uses_ = std::make_unique<use::Sampler>(use_options(hierarchies));
    log_inventory(machine.inventory);
    DROVER_CHECK_OK(check_containerizers(options_));
    auto state = control::restore(std::move(opened.journaled), machine,
                                  placement::node_policy(options_.placement).value());
    state.privileged_allowed = options_.allow_privileged;
    state.gpu_share = {options_.milli_cpus_per_gpu, options_.memory_bytes_per_gpu};
    DROVER_CHECK_OK(daemon_.open(opened.id, ports(hierarchies), std::move(opened.journal), std::move(state),
                                 std::move(view)));
    api::ServerOptions server;
    server.images = &pulls_;
    if (options_.network == "bridge") server.default_network = workload::NetworkMode::kBridge;
    server.measure_gpus = [this](auto done) { measure_usage(std::move(done)); };
    DROVER_CHECK_OK(daemon_.listen(std::move(server)));
    DROVER_TRY(auto made, make_containerizers(options_, images_, limits_));
    DROVER_TRY(auto containerizer,
               container::ShimContainerizer::create(options_.state, std::move(made.launcher),
                                                    daemon_.engine().watcher(), books_));
    periodic_tasks_.add("keeping the MPS daemons of groups", kSharesPause,
                        [this] { group_shares_trouble_.report(group_shares_->keep()); });
    DROVER_CHECK_OK(daemon_.begin(std::move(containerizer), std::move(made.runtime)));
    spdlog::info("This node offers {}", daemon_.engine().node().resources);
    daemon_.announce();
    const bool usual = options_.socket == cli::kDefaultSocket;
    spdlog::info("{}", first_steps(watch_->inventory(), usual ? "" : options_.socket));
    return {};
  }

  void run() { daemon_.run(); }

 private:
  /// The machine as it was seen last, without what is out of health now.
  placement::Node current_machine() const {
    auto sight = watch_->sight();
    const auto health = watch_->health();
    for (auto& device : sight.inventory.devices)  // of its parts, too, what ails a GPU takes out all
      if (auto why = health.why_unhealthy(device.uuid); !why.empty()) device.unhealthy = std::move(why);
    return describe_node(name_, hardware_->host(), std::move(sight), attributes_);
  }

  void watch_shares() {
    const auto judged = [this](std::vector<share::Verdict> verdicts) {
      boost::asio::post(daemon_.context(),
                        [this, verdicts = std::move(verdicts)] { daemon_.engine().judged(verdicts); });
    };
    shares_ = std::make_unique<share::Watch>([this] { return hardware_->shared_nvml(); },
                                             punishment_of(options_.share_offence), judged);
  }

  use::SamplerOptions use_options(const std::vector<container::Hierarchy>& hierarchies) {
    use::SamplerOptions options;
    options.tasks = options_.state + "/" + container::kTasksFolder;
    options.hierarchies = hierarchies;
    options.nvml = [this] { return hardware_->shared_nvml(); };
    options.owners = [](const std::vector<use::Watched>& watched) {
      std::vector<engine::TaskProcesses> tasks;
      for (const auto& task : watched) tasks.push_back({task.task, task.first, {}});
      return task_of(tasks);
    };
    options.log = [](const std::string& line) { spdlog::warn("{}", line); };
    return options;
  }

  void watch_gpus() {
    const auto offer = [this] {
      boost::asio::post(daemon_.context(), [this] { daemon_.engine().set_machine(current_machine()); });
    };
    gpu::InventoryWatchOptions options;
    options.seen = [this, offer](const gpu::Sight& sight) {
      refresh_cdi(sight.inventory);
      offer();
    };
    options.changed = [offer](const gpu::HealthChange&) { offer(); };
    watch_ = std::make_unique<gpu::InventoryWatch>(
        [hardware = hardware_, parts = books_.parts](const gpu::Sight& before) {
          return look(*hardware, *parts, before);
        },
        [this] { return hardware_->shared_nvml(); }, std::move(options));
  }

  /// Whose an instance is, is asked before and after: a task's may come or go while the driver tells of it.
  static gpu::Sight look(const Hardware& hardware, const container::PartBook& parts,
                         const gpu::Sight& before) {
    auto ours = parts.parts();
    gpu::Sight sight{hardware.discover(), {}};
    sight.mig = discover_mig(hardware, sight.inventory, before.mig);
    ours.merge(parts.parts());
    leave_foreign(sight.mig, ours);
    return sight;
  }

  engine::Ports ports(const std::vector<container::Hierarchy>& hierarchies) {
    auto ports = daemon_.ports();
    ports.free_unused = [this](std::uint64_t bytes, const auto& named) {
      free_unused({options_.state, images_, *hardware_}, bytes, named);
    };
    if (options_.gpu_strangers == "wait")
      ports.strangers = [this](const auto& devices, const auto& tasks) {
        return strangers_on(devices, tasks, {*hardware_, processes_, options_.gpu_monitors, *group_shares_});
      };
    ports.what_still_runs = what_still_runs;
    ports.busy_tasks = [this](const auto& devices, const auto& tasks) {
      return busy_tasks(devices, tasks, work_done_);
    };
    ports.watch_shares = [this](engine::SharedGpus shared) {
      shares_->set({std::move(shared.gpus), std::move(shared.allowances),
                    [tasks = std::move(shared.tasks)] { return task_of(tasks); },
                    guarded_tasks(std::move(shared.guarded)), time_shares_of(options_.share_time)});
    };
    ports.watch_use = [this](auto task) { uses_->begin(std::move(task)); };
    ports.end_use = [this](const auto& task) { return uses_->end(task); };
    ports.forget_use = [this](const auto& task) { uses_->forget(task); };
    ports.latest_use = [this] { return uses_->latest(); };
    ports.use_history = [this](const auto& task, auto resolution, auto from, auto until) {
      return uses_->history(task, resolution, from, until);
    };
    ports.task_space = [this](const auto& tasks) { return task_space(options_.state, tasks); };
    ports.gpu_nodes = [this](const auto& devices) { return hardware_->nodes_of(devices); };
    ports.driver_supply = [this](bool guarded) { return hardware_->driver_supply(guarded); };
    ports.memory_limiter = [this](const auto& limits) { return limits_.limiter(limits); };
    ports.change_memory_limits = [this](const auto& group, const auto& limits) {
      return limits_.change(group, limits);
    };
    ports.listening = container::listening_ports;
    ports.usable_cpus = container::usable_cpus(hierarchies);
    ports.devices = [this](const workload::Task& task) { return hardware_->devices_of(task); };
    ports.cdi_specification = [this] { return cdi_text(); };
    ports.image_variants = variant_lookup(images_);
    ports.profile_facts = gpu::machine_of_profile;
    return ports;
  }

  Result<std::string> cdi_text() const {
    return hardware_->cdi_specification(watch_->inventory()).map([](const auto& specification) {
      return cdi::write_specification(specification);
    });
  }

  /// Without it tasks are limited each by itself.
  static void leave_processes_to_the_machine(const std::vector<container::Hierarchy>& hierarchies) {
    const auto limited = container::kernel_process_limit().and_then([&](std::uint64_t limit) {
      return container::limit_processes(hierarchies, container::LauncherOptions{}.cgroup_parent,
                                        container::most_processes(limit));
    });
    if (!limited) spdlog::warn("{}", to_string(limited.error()));
  }

  void refresh_cdi(const gpu::Inventory& inventory) {
    if (!options_.cdi_specification.empty()) cdi_file_.keep(hardware_->cdi_specification(inventory));
  }

  void measure_usage(std::function<void(metrics::MachineFacts)> done) {
    daemon_.on_pool(0, [this, inventory = daemon_.engine().inventory(), done = std::move(done)] {
      auto usage = usage_.sample(inventory.devices);
      boost::asio::post(daemon_.context(), [this, inventory, usage = std::move(usage), done] {
        metrics::MachineFacts facts{name_, inventory, watch_->health(), usage, {}, {}, {}};
        const auto owner_of = [](const std::string& task) { return metrics::Owner{{"task_id", task}}; };
        add_shares(shares_->figures(), owner_of, facts);
        done(std::move(facts));
      });
    });
  }

  std::map<std::string, share::GuardedTask> guarded_tasks(
      std::map<std::string, engine::GuardedShare> shares) const {
    std::map<std::string, share::GuardedTask> tasks;
    for (auto& [name, guarded] : shares)
      tasks[name] = {fmt::format("{}/tasks/{}", options_.state, guarded.task), std::move(guarded.limits)};
    return tasks;
  }

  share::HostShares::Options group_share_options() {
    return {options_.state, [hardware = hardware_] { return hardware->sharing_programs(); },
            [](const std::string& sentence) { spdlog::warn("{}", sentence); },
            [this](const std::string& group) {
              boost::asio::post(daemon_.context(), [this, group] { daemon_.engine().mps_restarted(group); });
            }};
  }

  const cli::ServeOptions& options_;
  std::shared_ptr<const Hardware> hardware_;
  MemoryLimits limits_{hardware_};
  LogOnce group_shares_trouble_{[](const std::string& line) { spdlog::warn("{}", line); }};
  std::shared_ptr<share::HostShares> group_shares_ =
      std::make_shared<share::HostShares>(group_share_options());
  image::Store images_;
  engine::Images pulls_{images_, options_.limits.pulls};
  gpu::UsageSampler usage_{[this] { return hardware_->shared_nvml(); }};
  /// Apart: what one GPU that is about to be given does must be of now.
  gpu::UsageSampler processes_{[this] { return hardware_->shared_nvml(); },
                               {.fresh = std::chrono::milliseconds(0)}};
  gpu::UsageSampler work_done_{[this] { return hardware_->shared_nvml(); },
                               {.fresh = std::chrono::milliseconds(0)}};
  std::string name_ = host_name();
  container::Books books_;                        ///< since start()
  Attributes attributes_;                         ///< those that do not change
  CdiFile cdi_file_{options_.cdi_specification};  ///< touched by one look at a time
  std::unique_ptr<use::Sampler> uses_;            ///< since start()
  Daemon daemon_{options_};                       ///< its threads use what stands above
  std::unique_ptr<share::Watch> shares_;          ///< goes before it: it posts to the daemon
  std::unique_ptr<gpu::InventoryWatch> watch_;    ///< the same
  PeriodicTasks periodic_tasks_;                  ///< what it repeats uses what stands above
};

/// Of files that a daemon which was killed had begun to write, and that nothing else clears up.
void remove_unfinished(const cli::ServeOptions& options) {
  const auto remove = [](const std::string& path, const std::string& prefix) {
    const auto folder = Directory::open(path);
    const auto removed = folder ? folder->remove_unfinished(prefix) : Status();
    if (!removed) spdlog::warn("{}", to_string(removed.error()));
  };
  remove(options.state + "/sim", "");
  if (const std::filesystem::path file = options.cdi_specification; !file.empty())
    remove(file.parent_path(), file.filename().string() + ".");
}

Status run_machine(const cli::ServeOptions& options) {
  DROVER_TRY(auto opened, open_state(options.state));
  remove_unfinished(options);
  DROVER_TRY(auto hardware, Hardware::open({.state = options.state,
                                            .simulate = options.simulate,
                                            .driver_root = options.driver_root,
                                            .cdi_folders = options.cdi_folders,
                                            .allowed_devices = options.allow_devices}));
  DROVER_TRY(auto images, open_images(options));
  MachineDaemon daemon(options, std::move(hardware), std::move(images));
  DROVER_CHECK_OK(daemon.start(std::move(opened)));
  daemon.run();
  return {};
}

Status run_service(const cli::ServeOptions& options) {
  if (::geteuid() != 0)
    return fail(ErrorKind::kPermissionDenied,
                "'drover serve' makes containers and device nodes, which only root may do",
                "start it with sudo, or as a service");
  ::umask(077);  // whoever starts it: what others may read has a mode of its own
  if (options.engine == "kubernetes") return run_cluster(options);
  if (!options.lease.empty())
    return fail(ErrorKind::kInvalid, "A Lease is of a cluster, and the daemon runs tasks of this machine",
                "add --engine kubernetes", "--lease");
  return run_machine(options);
}

}  // namespace

Result<std::string> restore(const std::string& state, const std::string& backup, bool force) {
  if (::geteuid() == 0) return store::restore(state, backup, force);
  return fail(ErrorKind::kPermissionDenied, "Only root may put a backup in the place of the journal",
              "run it with sudo");
}

Status serve(const cli::ServeOptions& options) {
  set_up_log(options.log);
  ::signal(SIGPIPE, SIG_IGN);
  raise_limits();
  return run_service(options);
}

}  // namespace drover
