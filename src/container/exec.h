#pragma once

// A process that joins a running container: as the task's user, in its namespaces and its cgroup, with its
// device rights and its system call filter. For `drover exec` and for checks that are commands.

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/files.h"
#include "base/result.h"
#include "container/cgroup.h"

namespace drover::container {

struct ExecRequest {
  std::vector<std::string> command;
  std::map<std::string, std::string> environment;  ///< beside the task's own
  bool tty = false;                                ///< a pseudo terminal instead of three pipes
  int rows = 24;
  int columns = 80;
};

/// The process and its ends of pipes or terminal. Whoever lets go of it ends it, with all that it has started
/// in the container. Not thread safe.
class ExecProcess {
 public:
  ~ExecProcess();
  ExecProcess(const ExecProcess&) = delete;
  ExecProcess& operator=(const ExecProcess&) = delete;

  // Non-blocking. With a terminal input() and output() are the same, and errors() is -1.
  int input() const { return tty_ ? terminal_.get() : input_.get(); }
  int output() const { return tty_ ? terminal_.get() : output_.get(); }
  int errors() const { return tty_ ? -1 : errors_.get(); }
  /// Of pipes: the command reads the end of its input. A terminal takes control-D instead.
  void close_input();
  Status resize(int rows, int columns);

  /// Becomes readable when the process has ended.
  int process() const { return process_.get(); }
  /// After it has ended: its exit status, 128 + n when signal n ended it; an Error when it could not be
  /// started.
  Result<int> wait();
  /// SIGKILL for it and everything it has started in the container.
  void kill();

 private:
  friend class ExecStarter;
  ExecProcess(Directory task, std::string id, std::string runtime, Cgroup cgroup);

  Directory task_;
  std::string id_;
  std::string runtime_;
  Cgroup cgroup_;
  bool tty_ = false;
  UniqueFd input_, output_, errors_, terminal_;
  UniqueFd process_;  ///< pidfd of the runtime, which waits for the command
  pid_t runtime_pid_ = 0;
  std::optional<int> wait_status_;
};

/// Starts it in the container of the task whose folder this is. kConflict when the container does not run.
Result<std::unique_ptr<ExecProcess>> start_exec(const Directory& task, const std::string& task_id,
                                                const std::string& runtime, Cgroup cgroup,
                                                const ExecRequest& request);

/// Ends what processes of earlier daemons have left in a container.
void end_forgotten_execs(const Cgroup& cgroup);

struct CommandOutcome {
  int exit_status = 0;
  std::string output;  ///< the end of both its outputs
};

/// Runs it to its end; kTimeout when it takes longer, and then it is killed with all that it has started.
/// Blocks.
Result<CommandOutcome> await_command(ExecProcess& process, std::chrono::milliseconds timeout);

}  // namespace drover::container
