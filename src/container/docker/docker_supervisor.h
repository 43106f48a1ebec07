#pragma once

// Sees one container of a Docker Engine through, as Supervisor does it with one of an OCI runtime: has the
// engine create and start it, writes its output into the logs, stops it on signals, and says how it ended. An
// engine that goes away is waited for: the container may live on without it. One thread, one poll loop; the
// caller has blocked the signals that are listened to. Not thread safe.

#include <array>
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/files.h"
#include "base/result.h"
#include "container/cgroup.h"
#include "container/containerizer.h"
#include "container/docker/engine.h"
#include "container/docker/frames.h"
#include "container/docker/init_errors.h"
#include "container/launch_spec.h"
#include "container/log_writer.h"

namespace drover::container::docker {

/// The name of a task's container.
std::string container_name(const std::string& task_id);

class DockerSupervisor {
 public:
  using Clock = std::chrono::steady_clock;

  /// The references must outlive it. `spec.docker` is set.
  DockerSupervisor(const LaunchSpec& spec, const Directory& task, std::vector<Hierarchy> hierarchies,
                   std::array<LogWriter, 2> logs);

  /// Until the container has ended, or an Error when it could not be started; then the engine has it no more.
  /// `started` is called in between.
  Result<Ending> run(const std::function<void(const Running&)>& started);
  /// Whether somebody asked it to stop.
  bool stop_requested() const { return stop_requested_; }

 private:
  Status start();
  Status begin_waiting();
  void find_processes(int pid);
  void loop();
  int poll_timeout() const;
  void read_signals();
  void stop(bool force);
  void kill();
  void ask_to_end();
  void check_deadlines();
  void read_output();
  void keep(std::size_t stream, std::string_view bytes);
  void read_wait();
  void container_ended(int exit_code);
  void disconnected(const Error& why);
  void reconnect();
  void give_up();
  Ending ending() const;

  const LaunchSpec& spec_;
  const Directory& task_;
  const std::vector<Hierarchy> hierarchies_;
  std::array<LogWriter, 2> logs_;
  Engine engine_;
  std::string id_;  ///< of the container; "" before it is created
  UniqueFd signals_;

  std::optional<Exchange> output_, wait_;
  FrameReader frames_;
  InitErrors init_errors_;
  std::chrono::nanoseconds output_at_{};  ///< when output came last, by the clock that the engine's logs have
  std::array<std::size_t, 2> open_line_{};    ///< bytes of each output's last line, which is not complete
  std::array<std::size_t, 2> known_again_{};  ///< bytes that will come once more after a reconnection

  Running running_;
  UniqueFd first_process_;        ///< pidfd, where the engine runs on this machine
  std::optional<Cgroup> cgroup_;  ///< the same
  std::optional<int> exit_code_;
  bool stop_requested_ = false;
  bool asked_to_end_ = false;
  bool removed_ = false;     ///< by somebody else
  bool complained_ = false;  ///< of an engine that does not answer
  std::string lost_why_;     ///< nobody can say how it ended
  std::optional<Clock::time_point> kill_deadline_;
  std::optional<Clock::time_point> drain_deadline_;
  std::optional<Clock::time_point> retry_at_;
  Clock::time_point patience_ends_{};
};

}  // namespace drover::container::docker
