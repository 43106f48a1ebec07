#pragma once

// What processes are called and whose they are, as /proc says.

#include <sys/types.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/usage.h"
#include "metrics/gpu_metrics.h"

namespace drover::metrics {

/// The names of all groups in /proc/PID/cgroup, line by line, outermost first: "kubepods", "pod…", … Whoever
/// is in a container may make groups of any name within its own, so the first that is known is the right one.
std::vector<std::string_view> cgroup_names(std::string_view cgroups);

/// The id of 64 digits by which an engine has named the control group of a container:
/// "docker-<id>.scope"; "" for other groups, which may be those of many.
std::string_view container_of_group(std::string_view group);

/// Whose a process is by the text of its /proc/PID/cgroup; an empty owner for nobody's.
using OwnerOf = std::function<Owner(std::string_view cgroups)>;

/// Of all processes that use GPUs, below a folder that is mounted as /proc; those that are gone are left out.
std::map<std::uint32_t, ProcessFacts> read_processes(const std::string& proc,
                                                     const std::map<std::string, gpu::GpuUsage>& usage,
                                                     const OwnerOf& owner_of);

/// As the kernel tells of a process or a thread.
struct ProcessStat {
  std::string name;           ///< may hold anything
  char state = 0;             ///< 'R', 'S', 'D', …
  std::uint64_t started = 0;  ///< ticks after the machine was; never 0 of one that is there
};
/// Of the file "stat" in its folder below /proc; none when it is gone.
std::optional<ProcessStat> process_stat(const std::string& file);
/// Of a process whose threads go on this may be the first one only.
inline bool has_ended(const ProcessStat& stat) {
  return stat.state == 'Z' || stat.state == 'X';
}

struct ProcessState {
  pid_t pid = 0;
  std::string name;        ///< may hold anything
  bool in_kernel = false;  ///< it sleeps there and takes no signal, not even SIGKILL
};

/// Of a process below a folder that is mounted as /proc; none of one that has ended.
std::optional<ProcessState> process_state(const std::string& proc, pid_t pid);

}  // namespace drover::metrics
