#include "subject.h"

#include <fmt/format.h>

#include <chrono>
#include <ctime>
#include <stdexcept>

#include "base/units.h"
#include "control/journal.h"
#include "store/journal.h"

namespace drover::bench {
namespace {

constexpr std::int64_t kMilliCpus = 100'000'000;  // whatever is asked for fits
constexpr std::uint64_t kMemory = 1ULL << 50;

template <typename T>
T must(Result<T> result) {
  if (!result) throw std::runtime_error(to_string(result.error()));
  return std::move(*result);
}

/// Containers that run as soon as they are launched and end as soon as they are asked to.
class Containers final : public container::Containerizer {
 public:
  explicit Containers(container::Watcher watcher) : watcher_(std::move(watcher)) {}

  Status launch(const container::Launch& launch) override {
    watcher_.started(launch.task.id, {1, wall_clock()});
    return {};
  }
  Status stop(const std::string& id, bool) override {
    workload::Ending ending;
    ending.exit_status = 143;
    ending.stopped = true;
    ending.finished_at = wall_clock();
    watcher_.ended(id, ending);
    return {};
  }
  Result<container::Found> recover(const std::string&, int) override { return container::Found::kNever; }
  Status clean(const std::string&) override { return {}; }
  Status forget(const std::string&) override { return {}; }
  std::vector<std::string> known() const override { return {}; }
  Result<container::FolderView> examine(const std::string&) const override { return container::FolderView{}; }
  Status end(const std::string&) override { return {}; }
  Result<std::string> quarantine(const std::string& id) override { return "/nowhere/" + id; }
  Quarantine quarantined() const override { return {}; }
  std::string sandbox(const std::string& id) const override { return "/nowhere/" + id; }

 private:
  container::Watcher watcher_;
};

}  // namespace

Subject::Subject() {
  std::string pattern = std::filesystem::temp_directory_path() / "drover-bench-XXXXXX";
  if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no temporary folder");
  folder_ = pattern;
  start();
  thread_ = std::thread([this] { context_.run(); });
}

Subject::~Subject() {
  on_strand([this] { server_.reset(); });
  work_.reset();
  context_.stop();
  thread_.join();
  engine_.reset();
  std::filesystem::remove_all(folder_);
}

void Subject::start() {
  engine::Ports ports;
  ports.post = [this](engine::Work work) { boost::asio::post(context_, std::move(work)); };
  // Nothing here blocks.
  ports.pool = ports.slow_pool = [post = ports.post](uid_t, engine::Work work) { post(std::move(work)); };
  ports.now = wall_clock;
  ports.wake_at = [](TimePoint) {};  // ticks come when the benchmark says so
  ports.new_id = [this] { return fmt::format("{:012x}", ++ids_); };
  ports.log = [](const std::string& line) { fmt::print(stderr, "bench/control: {}\n", line); };
  ports.check = [this](const auto& task, auto targets) { checks_->set(task, std::move(targets)); };
  engine::CheckPorts check_ports;
  check_ports.result = [this](const engine::CheckResult& result) { engine_->checked(result); };
  check_ports.now = wall_clock;
  checks_ = std::make_unique<engine::Checks>(context_, std::move(check_ports));

  placement::Node machine{.name = "bench", .milli_cpus = kMilliCpus, .memory_bytes = kMemory};
  engine::NodeView view;
  view.name = machine.name;
  engine_ = std::make_unique<engine::LocalEngine>(std::move(ports),
                                                  must(store::Journal::open(folder_ / "state.db")),
                                                  control::restore({}, std::move(machine)), std::move(view));
  if (const auto started = engine_->start(std::make_unique<Containers>(engine_->watcher()), "none"); !started)
    throw std::runtime_error(to_string(started.error()));

  api::ServerOptions options;
  options.socket_path = socket();
  options.listen = api::ListenAddress{"127.0.0.1", 0};
  options.credentials = {{"root", std::string(32, 'x')}};
  options.anonymous = User{.name = "root"};
  options.version = "bench";
  server_ = must(api::Server::start(context_, *engine_, std::move(options)));
  port_ = server_->tcp_address()->port;
}

double Subject::cpu_ms() const {
  clockid_t clock{};
  timespec time{};
  pthread_getcpuclockid(const_cast<std::thread&>(thread_).native_handle(), &clock);
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) / 1e6;
}

}  // namespace drover::bench
