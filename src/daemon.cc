#include "daemon.h"

#include <fmt/format.h>
#include <signal.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <chrono>
#include <limits>
#include <random>

#include "api/chronos/run_report.h"
#include "base/files.h"
#include "base/ids.h"
#include "base/trusted_path.h"
#include "base/users.h"
#include "container/hidden_paths.h"
#include "credentials_watch.h"
#include "http/listen.h"
#include "store/state_folder.h"

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

void log_warning(const std::string& line) {
  spdlog::warn("{}", line);
}
void log_note(const std::string& line) {
  spdlog::info("{}", line);
}

/// None of it may be lost, so where there is not a single thread it is done here.
void hand_over(FairPool& pool, uid_t user, engine::Work work) {
  if (!pool.post(user, work)) work();
}

engine::WebhookOptions webhook_options() {
  engine::WebhookOptions options;
  options.log = log_warning;
  return options;
}

}  // namespace

Daemon::Daemon(const cli::ServeOptions& options)
    : options_(options),
      timeline_(SteadyTimeline::resume(options.state + "/timeline")),
      pool_(std::make_unique<FairPool>(FairPool::Limits{kPoolThreads, kAtOnce, kAll})),
      slow_pool_(
          std::make_unique<FairPool>(FairPool::Limits{kSlowThreads, options.limits.slow_launches, kAll})),
      webhooks_(webhook_options()) {}

Daemon::~Daemon() {
  if (engine_) engine_->abandon_launches();
  journal_thread_.join();
  slow_pool_.reset();
  pool_.reset();
}

void Daemon::on_pool(uid_t user, engine::Work work) {
  hand_over(*pool_, user, std::move(work));
}

engine::Ports Daemon::ports() {
  engine::Ports ports;
  ports.post = [this](engine::Work work) { asio::post(context_, std::move(work)); };
  ports.pool = [this](uid_t user, engine::Work work) { on_pool(user, std::move(work)); };
  ports.journal = [this](engine::Work work) { asio::post(journal_thread_, std::move(work)); };
  ports.slow_pool = [this](uid_t user, engine::Work work) { hand_over(*slow_pool_, user, std::move(work)); };
  ports.now = wall_clock;
  ports.steady = [this] { return timeline_.now(); };
  ports.free_space = [this] { return free_space(options_.state); };
  ports.room_to_keep = options_.room_to_keep > 0 ? options_.room_to_keep
                                                 : std::min(disk_size(options_.state) / kRoomPart, kMostRoom);
  ports.events = {options_.max_events, options_.keep_events};
  ports.wake_at = [this](TimePoint at) { wake_at(at); };
  ports.new_id = random_id;
  ports.log = log_warning;
  ports.info = log_note;
  ports.check = [this](const auto& task, auto targets) { checks_->set(task, std::move(targets)); };
  ports.secret = [this](const auto& task, const auto& name) {
    return name == api::kExecutorToken ? std::optional(executor_tokens_->of(task)) : std::nullopt;
  };
  return ports;
}

Status Daemon::open(const std::string& id, engine::Ports ports, store::Journal journal, control::State state,
                    engine::NodeView view) {
  state.journal_id = uuid_named(id);
  state.limits = options_.limits;
  state.keep_ended = options_.keep_ended;
  state.executor_timeouts = {options_.executor_registration_timeout, options_.executor_recovery_timeout};
  if (state.limits.sandbox_bytes == 0) state.limits.sandbox_bytes = disk_size(options_.state) / kUsersPart;
  DROVER_TRY(executor_tokens_, api::ExecutorTokens::open(options_.state + "/executors.key"));
  checks_ = std::make_unique<engine::Checks>(context_, check_ports(), options_.limits.command_checks);
  engine_ = std::make_unique<engine::LocalEngine>(std::move(ports), std::move(journal), std::move(state),
                                                  std::move(view));
  notice_watch_ = engine_->watch([this](const control::Notice& notice) { notify_webhooks(notice); });
  return {};
}

Status Daemon::begin(std::unique_ptr<container::Containerizer> containerizer, std::string runtime) {
  DROVER_CHECK_OK(engine_->start(std::move(containerizer), std::move(runtime)));
  wake_at(timeline_.now() + kHouseKeeping);
  return {};
}

void Daemon::run() {
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

/// From the thread that everything waits for: a service manager that hears nothing starts us anew, and tasks
/// go on. How late it comes to this is how late it comes to everything.
void Daemon::show_life() {
  if (manager_.watchdog()) manager_.notify("WATCHDOG=1");
  life_.expires_after(kPulse);
  life_.async_wait([this](const auto& error) {
    if (error) return;
    lags_.observe(std::chrono::duration<double>(std::chrono::steady_clock::now() - life_.expiry()).count());
    show_life();
  });
}

void Daemon::add_facts(metrics::DaemonFacts& facts) const {
  facts.lags = lags_.samples();
  for (const auto& [name, pool] : {std::pair("launches", &pool_), std::pair("slow-launches", &slow_pool_)}) {
    const auto [running, waiting] = (*pool)->totals();
    facts.pools.push_back({name, running, waiting});
  }
}

engine::CheckPorts Daemon::check_ports() {
  engine::CheckPorts ports;
  ports.result = [this](const engine::CheckResult& result) { engine_->checked(result); };
  ports.run_command = [this](const auto& task, const auto& command, auto timeout, auto done) {
    engine_->run_command(task, command, timeout, std::move(done));
  };
  ports.now = wall_clock;
  return ports;
}

void Daemon::notify_webhooks(const control::Notice& notice) {
  const auto* ended = std::get_if<control::notice::ScheduleRunEnded>(&notice);
  if (ended == nullptr) return;
  auto message = api::chronos::report_of(*ended, engine_->state());
  if (message && !webhooks_.send(std::move(*message)))
    spdlog::warn("The webhook of the job '{}' was not told of run '{}': too many wait already",
                 ended->schedule, ended->entry.run.origin_id);
}

Status Daemon::admit_anonymous(api::ServerOptions& options) const {
  if (options_.anonymous.empty()) return {};
  auto user = find_user(options_.anonymous);
  if (!user) return Failure(drover::context(user.error(), "--anonymous"));
  if (user->uid == 0)
    return fail(ErrorKind::kInvalid, "Everybody on this machine would be root",
                "choose another user, or show root's secret", "--anonymous");
  spdlog::warn("Whoever reaches '{}' without a secret acts as '{}'", options_.listen, options_.anonymous);
  options.anonymous = std::move(*user);
  return {};
}

/// What only a server on TCP has.
Status Daemon::check_tcp_options() const {
  if (!options_.listen.empty()) {
    for (const auto& name : options_.host_names)
      if (auto good = api::check_host_name(name); !good)
        return Failure(drover::context(good.error(), "--host-name"));
    if (!options_.executor_endpoint.empty() && !http::split_host(options_.executor_endpoint, std::nullopt))
      return fail(ErrorKind::kInvalid,
                  fmt::format("'{}' is no place where pods reach this daemon", options_.executor_endpoint),
                  "write HOST:PORT, as in drover-control-plane.drover.svc:8080", "--executor-endpoint");
    return {};
  }
  for (const auto& [flag, given] : {std::pair("--anonymous", !options_.anonymous.empty()),
                                    std::pair("--insecure-listen", options_.insecure_listen),
                                    std::pair("--host-name", !options_.host_names.empty()),
                                    std::pair("--executor-endpoint", !options_.executor_endpoint.empty())})
    if (given)
      return fail(ErrorKind::kInvalid,
                  std::string(flag) + " is for TCP, and the daemon does not listen there",
                  "add --listen 127.0.0.1:PORT", flag);
  return {};
}

Status Daemon::listen(api::ServerOptions options) {
  DROVER_CHECK_OK(check_tcp_options());
  options.socket_path = options_.socket;
  options.version = DROVER_VERSION;
  options.answer_bytes = options_.limits.answer_bytes;
  options.marathon_strict = options_.marathon_strict;
  options.filter_gpu_resources = options_.filter_gpu_resources;
  options.executor_tokens = executor_tokens_;
  DROVER_TRY(options.logins, api::Logins::open(options_.state + "/logins.key"));
  options.log = log_warning;
  options.audit = log_note;
  options.add_facts = [this](metrics::DaemonFacts& facts) { add_facts(facts); };
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
void Daemon::announce() const {
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
}

void Daemon::watch_credentials() {
  CredentialsPorts ports;
  ports.pool = [this](auto work) { on_pool(0, std::move(work)); };
  ports.take = [this](auto credentials) { server_->set_credentials(std::move(credentials)); };
  credentials_watch_ = drover::watch_credentials(context_, credentials_path(), std::move(ports));
}

void Daemon::wake_at(TimePoint wanted) {
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

Result<Opened> open_state(const std::string& folder) {
  DROVER_CHECK_OK(Directory::create(folder, 0711));
  DROVER_CHECK_OK(check_trusted(folder));
  // The journal first: it is locked, so nothing below is shared with another daemon.
  const auto path = store::journal_file(folder);
  DROVER_TRY(auto journal, store::Journal::open(path));
  DROVER_TRY(auto journaled, read_journal(journal, path));
  DROVER_TRY(const auto joined, store::join(journal, folder));
  for (const auto& sentence : joined.news) spdlog::warn("{}", sentence);
  return Opened{std::move(journal), std::move(journaled), joined.id};
}

}  // namespace drover
