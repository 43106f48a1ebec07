#pragma once

// Sees one container through: has the OCI runtime start it, writes its output into the logs, stops it on
// signals, and says how it ended. One thread, one poll loop. The caller is the subreaper, has blocked the
// signals that are listened to, and has mounted the root file system. Not thread safe.

#include <sys/types.h>

#include <array>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/fd.h"
#include "base/files.h"
#include "base/result.h"
#include "container/cgroup.h"
#include "container/containerizer.h"
#include "container/init.h"
#include "container/launch_spec.h"
#include "container/log_writer.h"
#include "container/task_input.h"

namespace drover::container {

/// SIGTERM, SIGINT, SIGUSR1 and SIGCHLD: who spawns a shim blocks them.
sigset_t supervised_signals();

/// Of any supervisor: how long output is waited for after the container has ended.
inline constexpr std::chrono::seconds kDrainTimeout{2};
/// How often a container that was asked to end is looked at.
inline constexpr std::chrono::milliseconds kStopPoll{20};

/// Of any wait that was asked for: what is longer would not fit the clock's nanoseconds.
std::chrono::steady_clock::time_point deadline_after(std::chrono::milliseconds wait);
/// Puts into words that the container needed more memory than it may have.
void say_out_of_memory(Ending& ending);
/// The same for an ending by a signal, with the exit status that shells give it.
void say_signal(Ending& ending, int signal);

class Supervisor {
 public:
  using Clock = std::chrono::steady_clock;

  /// The references must outlive it.
  Supervisor(const LaunchSpec& spec, const Directory& task, const Cgroup& cgroup,
             std::array<LogWriter, 2> logs);

  /// Without the process of this pidfd the container is of no use: it is killed when that one ends, and the
  /// ending says `message`. Before run(); -1 for none.
  void depend_on(int process, std::string message);
  /// Until the container has ended, or an Error when it could not be started. `started` is called in between.
  Result<Ending> run(const std::function<void(const Running&)>& started);
  /// Whether somebody asked it to stop.
  bool stop_requested() const { return stop_requested_; }

 private:
  Result<UniqueFd> open_input();
  Status spawn_runtime();
  void take_terminal();
  void loop(const std::function<void(const Running&)>& started);
  bool finished() const;
  int poll_timeout() const;
  void read_signals();
  void reap();
  void runtime_ended(int status);
  void began();
  void container_ended(int status);
  void stop(bool force);
  void signal_stop();
  void desert();
  void give_up_start();
  void check_deadlines();
  void read_output(std::size_t stream);
  void read_report();
  Error start_failure() const;
  Ending ending() const;

  const LaunchSpec& spec_;
  const Directory& task_;
  const Cgroup& cgroup_;
  std::array<LogWriter, 2> logs_;
  std::array<UniqueFd, 2> pipes_;  ///< outputs; the first becomes the terminal, where there is one
  UniqueFd report_pipe_;
  UniqueFd console_;  ///< where the runtime hands over the container's terminal
  std::optional<TaskInput> input_;
  InitReport report_;
  UniqueFd signals_;
  int needed_ = -1;         ///< pidfd of a process that the container depends on, while that one lives
  std::string needed_for_;  ///< what is said when it has ended
  bool deserted_ = false;   ///< it ended before the container
  pid_t runtime_ = 0;
  pid_t init_ = 0;
  std::map<pid_t, int> orphans_;  ///< reaped before it was known whether one of them is the container
  std::string error_tail_;        ///< the end of standard error until the container runs
  std::optional<Running> running_;
  std::optional<int> runtime_status_;
  std::optional<int> wait_status_;  ///< of the container's first process
  bool start_failed_ = false;
  std::optional<Error> failure_;  ///< other than what the runtime says of itself
  bool stop_requested_ = false;
  bool out_of_memory_ = false;
  std::optional<Clock::time_point> start_deadline_;
  std::optional<Clock::time_point> kill_deadline_;
  std::optional<Clock::time_point> drain_deadline_;
};

}  // namespace drover::container
