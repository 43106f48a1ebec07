#pragma once

// A process that joins a running container: as the task's user, in its namespaces and its cgroup, with its
// device rights and its system call filter. For `drover exec` and for checks that are commands.

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

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
  virtual ~ExecProcess() = default;

  // Non-blocking. With a terminal input() and output() are the same, and errors() is -1.
  virtual int input() const = 0;
  virtual int output() const = 0;
  virtual int errors() const = 0;
  /// Of pipes: the command reads the end of its input. A terminal takes control-D instead.
  virtual void close_input() = 0;
  virtual Status resize(int rows, int columns) = 0;

  /// Becomes readable when the process has ended.
  virtual int process() const = 0;
  /// After it has ended: its exit status, 128 + n when signal n ended it; an Error when it could not be
  /// started.
  virtual Result<int> wait() = 0;
  /// SIGKILL for it and everything it has started in the container.
  virtual void kill() = 0;
};

/// Paths of programs.
struct ExecPrograms {
  std::string drover;   ///< for `drover with-oom-score`
  std::string runtime;  ///< that made the container
};

/// Starts it in the container of the task whose folder this is. kConflict when the container does not run.
Result<std::unique_ptr<ExecProcess>> start_exec(const Directory& task, const std::string& task_id,
                                                const ExecPrograms& programs, Cgroup cgroup,
                                                const ExecRequest& request);

struct CommandOutcome {
  int exit_status = 0;
  std::string output;  ///< the end of both its outputs
};

/// Runs it to its end; kTimeout when it takes longer, and then it is killed with all that it has started.
/// Blocks.
Result<CommandOutcome> await_command(ExecProcess& process, std::chrono::milliseconds timeout);

}  // namespace drover::container
