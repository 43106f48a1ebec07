#pragma once

// Stops a container as `kill` stops a program. SIGTERM goes to all processes of the container, as Mesos and
// systemd do it, so a script's child hears of it too. The kernel, though, keeps SIGTERM from the first
// process of a PID namespace that has no handler for it, which is why `docker stop` of a `sleep` takes ten
// seconds. Such a process would have died of it anywhere else: it is halted, so that a script does not go on
// to its next command, and ended as soon as the others are gone. A process that executes another program
// after the signal (the runtime's own beginning of every container does) is told again. Not thread safe.

#include <sys/types.h>

#include <string_view>
#include <utility>

#include "container/cgroup.h"

namespace drover::container {

class GracefulStop {
 public:
  /// `init` is the container's first process, a child of ours that is not yet reaped.
  GracefulStop(pid_t init, const Cgroup& cgroup) : init_(init), cgroup_(&cgroup) {}

  void begin();
  /// To be called now and then until the container has ended.
  void proceed();
  /// Whether the first process was ended in place of the SIGTERM that the kernel kept from it.
  bool replaced_signal() const { return replaced_signal_; }

 private:
  using Program = std::pair<dev_t, ino_t>;
  Program program() const;

  pid_t init_;
  const Cgroup* cgroup_;
  Program program_;  ///< that init ran when it was told
  bool would_die_ = false;
  bool replaced_signal_ = false;
};

/// Whether `signal` neither is caught nor ignored, from the text of /proc/<pid>/status (proc(5)).
bool has_default_disposition(std::string_view status, int signal);

}  // namespace drover::container
