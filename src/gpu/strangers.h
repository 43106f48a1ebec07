#pragma once

// Who has a GPU open that it was not given to: a program that somebody started beside Drover, or a task that
// was handed the open device by another. A driver goes on serving whoever has its device open, so such a GPU
// is given to nobody until it is closed.
//
// A process is seen when it has the device open, under whatever name, or, being a task's, mapped, and when
// the driver says that it computes there. Whoever is no task's can open the device whenever he likes: he has
// no use for closing what he has mapped, and to read what everybody has mapped takes long. A descriptor that
// is under way in a socket belongs to no process; it is seen as soon as it is received. Blocks for as long as
// it takes to look at all processes; thread safe.

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace drover::gpu {

/// A GPU that is to be given, or is given.
struct GuardedGpu {
  std::string uuid;
  dev_t device = 0;                   ///< of its node; 0 when it is not known
  std::set<std::uint32_t> computing;  ///< processes that the driver tells of
  std::set<std::string> tasks;        ///< that have it, or a share of it

  bool operator==(const GuardedGpu&) const = default;
};

/// Which task a process belongs to, by the text of its /proc/PID/cgroup; "" for none.
using TaskOf = std::function<std::string(std::string_view cgroups)>;

struct StrangerPolicy {
  std::set<std::string> excused;  ///< names of programs that may have any GPU open, whoever runs them
  std::set<pid_t> servers = {};   ///< MPS daemons that tasks were given, and their servers
};

/// Programs of the driver and of those who watch it: excused where root or another account of the system (a
/// user id below 1000) runs them.
const std::set<std::string>& system_programs();

/// The processes that have one of these character devices open or, being a task's, mapped, by number of the
/// device.
std::map<dev_t, std::set<std::uint32_t>> find_openers(const std::string& proc, const std::set<dev_t>& devices,
                                                      const TaskOf& task_of);

/// Why each of them must not be given on, by UUID: "process 123 (python3) has it open, and is no task's". A
/// process of a task is never excused. `proc` is a folder that is mounted as /proc.
std::map<std::string, std::string> find_strangers(const std::vector<GuardedGpu>& gpus,
                                                  const StrangerPolicy& policy, const TaskOf& task_of,
                                                  const std::string& proc = "/proc");

}  // namespace drover::gpu
