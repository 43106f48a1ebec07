#pragma once

// What `drover serve` is, whatever runs the tasks: threads and clocks, the engine with its journal, the
// server of the APIs, health checks and webhooks. What a machine has, or a cluster, is added by whoever makes
// it (serve.cc, serve_cluster.cc). Owned by the main thread.

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "api/credentials.h"
#include "api/server.h"
#include "base/fair_pool.h"
#include "base/service_manager.h"
#include "base/steady_timeline.h"
#include "cli/cli.h"
#include "control/journal.h"
#include "engine/local.h"
#include "engine/webhooks/webhooks.h"
#include "file_watch.h"
#include "metrics/histogram.h"
#include "store/journal.h"

namespace drover {

class Daemon {
 public:
  explicit Daemon(const cli::ServeOptions& options);
  ~Daemon();

  boost::asio::io_context& context() { return context_; }
  /// Runs it on a thread that may block, in the user's turn.
  void on_pool(uid_t user, engine::Work work);
  /// What is the same everywhere; the rest may stay empty.
  engine::Ports ports();

  /// The engine over a state that restore() made. `id`: of the journal and its folder.
  Status open(const std::string& id, engine::Ports ports, store::Journal journal, control::State state,
              engine::NodeView view);
  /// After open().
  engine::LocalEngine& engine() { return *engine_; }
  /// Serves the APIs. `options`: what not all daemons have; the rest is filled in here.
  Status listen(api::ServerOptions options);
  /// After listen(), whose routes it has.
  api::Server& server() { return *server_; }
  /// From here on tasks are carried out. `runtime`: for people.
  Status begin(std::unique_ptr<container::Containerizer> containerizer, std::string runtime);
  /// Says where it serves.
  void announce() const;
  /// Until it is told to end.
  void run();

 private:
  void show_life();
  void add_facts(metrics::DaemonFacts& facts) const;
  engine::CheckPorts check_ports();
  void notify_webhooks(const control::Notice& notice);
  Status check_tcp_options() const;
  Status admit_anonymous(api::ServerOptions& options) const;
  std::string credentials_path() const { return options_.state + "/credentials"; }
  void watch_credentials();
  void wake_at(TimePoint wanted);

  const cli::ServeOptions& options_;
  const ServiceManager manager_ = ServiceManager::of_environment();
  SteadyTimeline timeline_;
  boost::asio::io_context context_{1};
  boost::asio::thread_pool journal_thread_{1};
  std::unique_ptr<FairPool> pool_;
  std::unique_ptr<FairPool> slow_pool_;
  boost::asio::signal_set signals_{context_};
  boost::asio::steady_timer alarm_{context_};
  boost::asio::steady_timer life_{context_};
  metrics::Histogram lags_{metrics::kDurations};
  TimePoint alarm_at_ = TimePoint::max();  ///< what it is set to
  std::optional<api::ExecutorTokens> executor_tokens_;
  std::unique_ptr<engine::Checks> checks_;
  engine::Webhooks webhooks_;
  std::unique_ptr<engine::LocalEngine> engine_;
  std::shared_ptr<void> notice_watch_;  ///< of every notice
  std::unique_ptr<api::Server> server_;
  std::unique_ptr<FileWatch> credentials_watch_;
};

/// What a daemon begins with: the folder of its state, opened by it alone.
struct Opened {
  store::Journal journal;
  control::Journaled journaled;
  std::string id;  ///< of the journal and its folder
};
/// kInvalid and the like when the folder cannot be trusted, is another daemon's, or is damaged.
Result<Opened> open_state(const std::string& folder);

}  // namespace drover
