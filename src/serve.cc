#include "serve.h"

#include <fmt/format.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <chrono>
#include <filesystem>
#include <limits>
#include <random>

#include "api/chronos/run_report.h"
#include "api/credentials.h"
#include "api/server.h"
#include "base/fair_pool.h"
#include "base/files.h"
#include "base/ids.h"
#include "base/process.h"
#include "base/service_manager.h"
#include "base/steady_timeline.h"
#include "base/trusted_path.h"
#include "base/units.h"
#include "busy_tasks.h"
#include "cdi/write.h"
#include "cdi_file.h"
#include "container/cgroup.h"
#include "container/hidden_paths.h"
#include "container/network/listening_ports.h"
#include "container/shim_containerizer.h"
#include "containerizers.h"
#include "control/journal.h"
#include "credentials_watch.h"
#include "engine/images.h"
#include "engine/local.h"
#include "gpu/inventory_watch.h"
#include "gpu/usage_sampler.h"
#include "hardware.h"
#include "image/store.h"
#include "log_setup.h"
#include "node.h"
#include "store/journal.h"
#include "store/state_folder.h"
#include "strangers.h"
#include "task_processes.h"
#include "task_space.h"
#include "unused.h"

namespace drover {
namespace {

namespace asio = boost::asio;

constexpr std::size_t kPoolThreads = 48;
constexpr std::size_t kAtOnce = 16;  ///< of those, for one user
constexpr std::size_t kSlowThreads = 64;
constexpr std::uint64_t kUsersPart = 2;          ///< of the disk: what one user's tasks may take up
constexpr std::uint64_t kRoomPart = 20;          ///< of the disk: what is to stay free
constexpr std::uint64_t kMostRoom = 4ULL << 30;  ///< of that, however large the disk is
constexpr auto kAll = std::numeric_limits<std::size_t>::max();
constexpr std::chrono::seconds kPulse{1};
constexpr std::chrono::seconds kHouseKeeping{30};  // also how late it is noticed that somebody set the clock

std::string random_id() {
  std::random_device random;
  return fmt::format("{:08x}{:04x}", random(), random() & 0xffff);
}

Result<control::Journaled> read_journal(store::Journal& journal, const std::string& path) {
  control::JournalReader reader;
  DROVER_CHECK_OK(journal.load([&](const std::string& key, const std::string& text) -> Status {
    const auto read = reader.read(key, text);
    if (read) return {};
    return fail(ErrorKind::kCorrupt,
                fmt::format("The state file '{}' is damaged: {}", path, read.error().message),
                store::kDamagedHint);
  }));
  return std::move(reader).take();
}

/// One running daemon: the parts, and the threads that carry them.
class Service {
 public:
  Service(const cli::ServeOptions& options, Hardware hardware, image::Store images)
      : options_(options),
        hardware_(std::make_shared<const Hardware>(std::move(hardware))),
        images_(std::move(images)),
        attributes_(options.attributes),
        signals_(context_),
        alarm_(context_),
        life_(context_) {
    attributes_.merge(host_attributes(hardware_->host().cpu));
  }

  ~Service() {
    if (engine_) engine_->abandon_launches();
    journal_thread_.join();
    slow_pool_.reset();
    pool_.reset();
  }

  /// `id`: of the journal and its folder.
  Status start(store::Journal journal, control::Journaled journaled, const std::string& id) {
    watch_gpus();
    const auto machine = current_machine();
    engine::NodeView view;
    view.name = machine.name;
    view.disk_bytes = hardware_->host().disk_bytes;
    DROVER_TRY(const auto hierarchies, container::find_hierarchies());
    view.cgroups = container::cgroup_mode(hierarchies);
    leave_processes_to_the_machine(hierarchies);
    log_inventory(machine.inventory);
    DROVER_CHECK_OK(check_containerizers(options_));
    auto state =
        control::restore(std::move(journaled), machine, placement::node_policy(options_.placement).value());
    state.journal_id = uuid_named(id);
    state.privileged_allowed = options_.allow_privileged;
    state.limits = options_.limits;
    state.keep_ended = options_.keep_ended;
    state.gpu_share = {options_.milli_cpus_per_gpu, options_.memory_bytes_per_gpu};
    state.executor_timeouts = {options_.executor_registration_timeout, options_.executor_recovery_timeout};
    DROVER_TRY(executor_tokens_, api::ExecutorTokens::open(options_.state + "/executors.key"));
    if (state.limits.sandbox_bytes == 0) state.limits.sandbox_bytes = disk_size(options_.state) / kUsersPart;
    checks_ = std::make_unique<engine::Checks>(context_, check_ports(), options_.limits.command_checks);
    engine_ = std::make_unique<engine::LocalEngine>(ports(hierarchies), std::move(journal), std::move(state),
                                                    std::move(view));
    notice_watch_ = engine_->watch([this](const control::Notice& notice) { notify_webhooks(notice); });
    DROVER_CHECK_OK(listen());
    DROVER_TRY(auto made, make_containerizers(options_, images_));
    DROVER_TRY(auto containerizer, container::ShimContainerizer::create(
                                       options_.state, std::move(made.launcher), engine_->watcher()));
    DROVER_CHECK_OK(engine_->start(std::move(containerizer), std::move(made.runtime)));
    spdlog::info("This node offers {}", engine_->node().resources);
    announce();
    wake_at(timeline_.now() + kHouseKeeping);
    return {};
  }

  void run() {
    signals_.add(SIGINT);
    signals_.add(SIGTERM);
    signals_.async_wait([this](const auto& error, int) {
      if (error) return;
      spdlog::info("Stopping; tasks go on and are found again at the next start");
      manager_.notify("STOPPING=1");
      server_->stop();
      context_.stop();
    });
    manager_.notify("READY=1");
    show_life();
    context_.run();
  }

 private:
  /// The machine as it was seen last, without what is out of health now.
  placement::Node current_machine() const {
    return describe_node(name_, hardware_->host(), watch_->inventory(), attributes_);
  }

  void watch_gpus() {
    const auto offer = [this] { asio::post(context_, [this] { engine_->set_machine(current_machine()); }); };
    gpu::InventoryWatchOptions options;
    options.seen = [this, offer](const gpu::Sight& sight) {
      refresh_cdi(sight.inventory);
      offer();
    };
    options.changed = [offer](const gpu::HealthChange&) { offer(); };
    watch_ = std::make_unique<gpu::InventoryWatch>(
        [hardware = hardware_](const gpu::Sight&) { return gpu::Sight{hardware->discover(), {}}; },
        [this] { return hardware_->shared_nvml(); }, std::move(options));
  }

  /// From the thread that everything waits for: a service manager that hears nothing starts us anew, and
  /// tasks go on. How late it comes to this is how late it comes to everything.
  void show_life() {
    if (manager_.watchdog()) manager_.notify("WATCHDOG=1");
    life_.expires_after(kPulse);
    life_.async_wait([this](const auto& error) {
      if (error) return;
      lags_.observe(std::chrono::duration<double>(std::chrono::steady_clock::now() - life_.expiry()).count());
      show_life();
    });
  }

  void add_facts(metrics::DaemonFacts& facts) const {
    facts.lags = lags_.samples();
    for (const auto& [name, pool] :
         {std::pair("launches", &pool_), std::pair("slow-launches", &slow_pool_)}) {
      const auto [running, waiting] = (*pool)->totals();
      facts.pools.push_back({name, running, waiting});
    }
  }

  static void warn(const std::string& line) { spdlog::warn("{}", line); }
  static void inform(const std::string& line) { spdlog::info("{}", line); }

  /// None of it may be lost, so where there is not a single thread it is done here.
  static void hand_over(FairPool& pool, uid_t user, engine::Work work) {
    if (!pool.post(user, work)) work();
  }

  engine::Ports ports(const std::vector<container::Hierarchy>& hierarchies) {
    engine::Ports ports;
    ports.post = [this](engine::Work work) { asio::post(context_, std::move(work)); };
    ports.pool = [this](uid_t user, engine::Work work) { hand_over(*pool_, user, std::move(work)); };
    ports.journal = [this](engine::Work work) { asio::post(journal_thread_, std::move(work)); };
    ports.slow_pool = [this](uid_t user, engine::Work work) {
      hand_over(*slow_pool_, user, std::move(work));
    };
    ports.now = wall_clock;
    ports.steady = [this] { return timeline_.now(); };
    ports.free_space = [this] { return free_space(options_.state); };
    ports.room_to_keep = options_.room_to_keep > 0
                             ? options_.room_to_keep
                             : std::min(disk_size(options_.state) / kRoomPart, kMostRoom);
    ports.events = {options_.max_events, options_.keep_events};
    ports.free_unused = [this](std::uint64_t bytes, const auto& named) {
      free_unused({options_.state, images_, *hardware_}, bytes, named);
    };
    ports.wake_at = [this](TimePoint at) { wake_at(at); };
    ports.new_id = random_id;
    ports.log = warn;
    ports.info = inform;
    if (options_.gpu_strangers == "wait")
      ports.strangers = [this](const auto& devices, const auto& tasks) {
        return strangers_on(devices, tasks, {*hardware_, processes_, options_.gpu_monitors});
      };
    ports.what_still_runs = what_still_runs;
    ports.busy_tasks = [this](const auto& devices, const auto& tasks) {
      return busy_tasks(devices, tasks, work_done_);
    };
    ports.task_space = [this](const auto& tasks) { return task_space(options_.state, tasks); };
    ports.gpu_nodes = [this](const auto& devices) { return hardware_->nodes_of(devices); };
    ports.driver_supply = [this] { return hardware_->driver_supply(); };
    ports.listening = container::listening_ports;
    ports.usable_cpus = container::usable_cpus(hierarchies);
    ports.check = [this](const auto& task, auto targets) { checks_->set(task, std::move(targets)); };
    ports.devices = [this](const workload::Task& task) { return hardware_->devices_of(task); };
    ports.cdi_specification = [this] { return cdi_text(); };
    ports.secret = [this](const auto& task, const auto& name) {
      return name == api::kExecutorToken ? std::optional(executor_tokens_->of(task)) : std::nullopt;
    };
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

  engine::CheckPorts check_ports() {
    engine::CheckPorts ports;
    ports.result = [this](const engine::CheckResult& result) { engine_->checked(result); };
    ports.run_command = [this](const auto& task, const auto& command, auto timeout, auto done) {
      engine_->run_command(task, command, timeout, std::move(done));
    };
    ports.now = wall_clock;
    return ports;
  }

  void notify_webhooks(const control::Notice& notice) {
    const auto* ended = std::get_if<control::notice::ScheduleRunEnded>(&notice);
    if (ended == nullptr) return;
    auto message = api::chronos::report_of(*ended, engine_->state());
    if (message && !webhooks_.send(std::move(*message)))
      spdlog::warn("The webhook of the job '{}' was not told of run '{}': too many wait already",
                   ended->schedule, ended->entry.run.origin_id);
  }

  static engine::WebhookOptions webhook_options() {
    engine::WebhookOptions options;
    options.log = warn;
    return options;
  }

  Status admit_anonymous(api::ServerOptions& options) {
    if (options_.anonymous.empty()) return {};
    auto user = find_user(options_.anonymous);
    if (!user) return Failure(context(user.error(), "--anonymous"));
    if (user->uid == 0)
      return fail(ErrorKind::kInvalid, "Everybody on this machine would be root",
                  "choose another user, or show root's secret", "--anonymous");
    spdlog::warn("Whoever reaches '{}' without a secret acts as '{}'", options_.listen, options_.anonymous);
    options.anonymous = std::move(*user);
    return {};
  }

  /// What only a server on TCP has.
  Status check_tcp_options() {
    if (!options_.listen.empty()) {
      for (const auto& name : options_.host_names)
        if (auto good = api::check_host_name(name); !good)
          return Failure(context(good.error(), "--host-name"));
      return {};
    }
    for (const auto& [flag, given] : {std::pair("--anonymous", !options_.anonymous.empty()),
                                      std::pair("--insecure-listen", options_.insecure_listen),
                                      std::pair("--host-name", !options_.host_names.empty())})
      if (given)
        return fail(ErrorKind::kInvalid,
                    std::string(flag) + " is for TCP, and the daemon does not listen there",
                    "add --listen 127.0.0.1:PORT", flag);
    return {};
  }

  Status listen() {
    DROVER_CHECK_OK(check_tcp_options());
    api::ServerOptions options;
    options.socket_path = options_.socket;
    options.version = DROVER_VERSION;
    options.answer_bytes = options_.limits.answer_bytes;
    options.marathon_strict = options_.marathon_strict;
    options.filter_gpu_resources = options_.filter_gpu_resources;
    options.executor_tokens = executor_tokens_;
    options.images = &pulls_;
    if (options_.network == "bridge") options.default_network = workload::NetworkMode::kBridge;
    options.log = warn;
    options.audit = inform;
    options.add_facts = [this](metrics::DaemonFacts& facts) { add_facts(facts); };
    options.measure_gpus = [this](auto done) { measure_usage(std::move(done)); };
    if (!options_.listen.empty()) {
      DROVER_TRY(options.listen, api::parse_listen_address(options_.listen));
      options.insecure_listen = options_.insecure_listen;
      options.host_names = options_.host_names;
      DROVER_TRY(options.credentials, api::open_credentials(credentials_path()));
      DROVER_CHECK_OK(admit_anonymous(options));
    }
    DROVER_TRY(server_, api::Server::start(context_, *engine_, std::move(options)));
    if (!options_.listen.empty()) watch_credentials();
    return {};
  }

  /// What whoever starts it waits for: where it serves, once it is ready.
  void announce() const {
    if (container::place_to_hide(options_.socket) == options_.socket)
      spdlog::warn(
          "The socket is not alone in its folder: tasks without an image that run see it after a restart; "
          "give it a folder of its own");
    spdlog::info("Serving on '{}'", options_.socket);
    if (const auto address = server_->tcp_address())
      spdlog::info(
          "Serving on http://{0} for who has a secret of '{1}': DROVER_HOST=http://{0} "
          "DROVER_TOKEN=SECRET drover gpus",
          http::to_string(*address), credentials_path());
    const bool usual = options_.socket == cli::kDefaultSocket;
    spdlog::info("{}", first_steps(watch_->inventory(), usual ? "" : options_.socket));
  }

  std::string credentials_path() const { return options_.state + "/credentials"; }

  void watch_credentials() {
    CredentialsPorts ports;
    ports.pool = [this](auto work) { hand_over(*pool_, 0, std::move(work)); };
    ports.take = [this](auto credentials) { server_->set_credentials(std::move(credentials)); };
    credentials_watch_ = drover::watch_credentials(context_, credentials_path(), std::move(ports));
  }

  void measure_usage(std::function<void(metrics::MachineFacts)> done) {
    hand_over(*pool_, 0, [this, inventory = engine_->inventory(), done = std::move(done)] {
      auto usage = usage_.sample(inventory.devices);
      asio::post(context_, [this, inventory, usage = std::move(usage), done] {
        done({name_, inventory, watch_->health(), usage, {}, {}});
      });
    });
  }

  void wake_at(TimePoint wanted) {
    // It may lie a thousand years away, where a timer's nanoseconds do not reach.
    const auto at = std::min(wanted, timeline_.now() + kHouseKeeping);
    if (at >= alarm_at_) return;
    alarm_at_ = at;
    alarm_.expires_after(at - timeline_.now());
    alarm_.async_wait([this](const auto& error) {
      if (error) return;
      alarm_at_ = TimePoint::max();
      engine_->tick();
      wake_at(timeline_.now() + kHouseKeeping);
    });
  }

  cli::ServeOptions options_;
  const ServiceManager manager_ = ServiceManager::of_environment();
  std::shared_ptr<const Hardware> hardware_;
  image::Store images_;
  engine::Images pulls_{images_, options_.limits.pulls};
  gpu::UsageSampler usage_{[this] { return hardware_->shared_nvml(); }};
  /// Apart: what one GPU that is about to be given does must be of now.
  gpu::UsageSampler processes_{[this] { return hardware_->shared_nvml(); },
                               {.fresh = std::chrono::milliseconds(0)}};
  gpu::UsageSampler work_done_{[this] { return hardware_->shared_nvml(); },
                               {.fresh = std::chrono::milliseconds(0)}};
  SteadyTimeline timeline_ = SteadyTimeline::resume(options_.state + "/timeline");
  std::string name_ = host_name();
  Attributes attributes_;  ///< those that do not change
  asio::io_context context_{1};
  asio::thread_pool journal_thread_{1};
  std::unique_ptr<FairPool> pool_ = std::make_unique<FairPool>(FairPool::Limits{kPoolThreads, kAtOnce, kAll});
  std::unique_ptr<FairPool> slow_pool_ =
      std::make_unique<FairPool>(FairPool::Limits{kSlowThreads, options_.limits.slow_launches, kAll});
  asio::signal_set signals_;
  asio::steady_timer alarm_;
  asio::steady_timer life_;
  metrics::Histogram lags_{metrics::kDurations};
  CdiFile cdi_file_{options_.cdi_specification};  ///< touched by one look at a time
  TimePoint alarm_at_ = TimePoint::max();         ///< what it is set to
  std::optional<api::ExecutorTokens> executor_tokens_;
  std::unique_ptr<engine::Checks> checks_;
  engine::Webhooks webhooks_{webhook_options()};
  std::unique_ptr<engine::LocalEngine> engine_;
  std::shared_ptr<void> notice_watch_;  ///< of every notice
  std::unique_ptr<api::Server> server_;
  std::unique_ptr<FileWatch> credentials_watch_;
  std::unique_ptr<gpu::InventoryWatch> watch_;  ///< goes first: it posts to the context
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

Status run_service(const cli::ServeOptions& options) {
  if (::geteuid() != 0)
    return fail(ErrorKind::kPermissionDenied,
                "'drover serve' makes containers and device nodes, which only root may do",
                "start it with sudo, or as a service");
  ::umask(077);  // whoever starts it: what others may read has a mode of its own
  DROVER_TRY(const auto folder, Directory::create(options.state, 0711));
  DROVER_CHECK_OK(check_trusted(options.state));
  // The journal first: it is locked, so nothing below is shared with another daemon.
  const auto path = store::journal_file(options.state);
  DROVER_TRY(auto journal, store::Journal::open(path));
  DROVER_TRY(auto journaled, read_journal(journal, path));
  DROVER_TRY(const auto joined, store::join(journal, options.state));
  for (const auto& sentence : joined.news) spdlog::warn("{}", sentence);
  remove_unfinished(options);
  DROVER_TRY(auto hardware, Hardware::open({.state = options.state,
                                            .simulate = options.simulate,
                                            .driver_root = options.driver_root,
                                            .cdi_folders = options.cdi_folders,
                                            .allowed_devices = options.allow_devices}));
  DROVER_TRY(auto images, open_images(options));
  Service service(options, std::move(hardware), std::move(images));
  DROVER_CHECK_OK(service.start(std::move(journal), std::move(journaled), joined.id));
  service.run();
  return {};
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
