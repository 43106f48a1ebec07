#pragma once

// Control groups as far as Drover itself looks at them: the OCI runtime creates and fills a container's
// group; here it is asked who is in it, whether memory ran out, and it is emptied and removed when the
// runtime cannot be relied on. Version 1, 2 and hybrid. Thread safe.

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace drover::container {

/// One mounted cgroup file system.
struct Hierarchy {
  std::string mount;
  std::vector<std::string> controllers;  ///< of version 1: "memory", "name=systemd"; empty in version 2
  bool unified = false;                  ///< version 2

  bool operator==(const Hierarchy&) const = default;
};

/// Reads /proc/<pid>/mountinfo (proc(5)).
std::vector<Hierarchy> parse_hierarchies(std::string_view mountinfo);
Result<std::vector<Hierarchy>> find_hierarchies();

/// "v1", "v2", "hybrid", or "none".
std::string_view cgroup_mode(const std::vector<Hierarchy>& hierarchies);
/// Whether a limit on swap can be set here: kernels may be built or booted without.
bool can_limit_swap(const std::vector<Hierarchy>& hierarchies);
/// The CPUs that a container can be pinned to; none where there is no cpuset controller.
std::vector<int> usable_cpus(const std::vector<Hierarchy>& hierarchies);
/// Those of `wanted` that are usable; none when that leaves none or all of them, because then there is
/// nothing to pin. Both ascending.
std::vector<int> cpus_to_pin(const std::vector<int>& wanted, const std::vector<int>& usable);
/// Whether a process belongs to a service manager's group in this hierarchy; `own_groups` is the text of its
/// /proc/<pid>/cgroup (cgroups(7)). Pure.
bool in_service(const Hierarchy& hierarchy, std::string_view own_groups);
/// The path of the group that a container has, by the text of its first process's /proc/<pid>/cgroup: the
/// first that carries its id. None when there is none, as when that process is another machine's. Pure.
std::optional<std::string> group_of_container(std::string_view groups, std::string_view container_id);
/// The directory of the group that a process is in, by the text of its /proc/<pid>/cgroup, where version 2 is
/// the only one; else "". Pure.
std::string own_unified_folder(const std::vector<Hierarchy>& hierarchies, std::string_view own_groups);
/// Moves this process out of the service that started it, where a service manager keeps one group a service:
/// else the daemon's restart would end its shims. Takes some 15 ms (the kernel waits for all CPUs). Best
/// effort; without it KillMode=process has the same effect.
void leave_service(const std::vector<Hierarchy>& hierarchies, const std::string& cgroup);

/// How many processes the groups of all containers may have together, so that the machine keeps some: all
/// that the kernel can have but an eighth.
std::uint64_t most_processes(std::uint64_t kernel_limit);
/// What the kernel can have, by /proc/sys/kernel.
Result<std::uint64_t> kernel_process_limit();
/// Makes the group `path` where processes are counted, and limits it and all below.
Status limit_processes(const std::vector<Hierarchy>& hierarchies, const std::string& path,
                       std::uint64_t most);

class Cgroup {
 public:
  /// `path` is the group's path from the root of every hierarchy: "/drover/<id>".
  Cgroup(std::vector<Hierarchy> hierarchies, std::string path);

  /// Ids of all processes in it and in the groups inside of it, ascending.
  std::vector<pid_t> processes() const;
  /// The group of this name inside of this one, whether it is there or not.
  Cgroup child(const std::string& name) const { return {hierarchies_, path_ + "/" + name}; }
  /// The names of the groups inside of this one, sorted.
  std::vector<std::string> children() const;
  /// Makes it in every hierarchy in which the group that it lies in is there. Its limits are that group's.
  Status create() const;
  /// Moves a process into it, in every hierarchy in which it is there. Best effort.
  void take(pid_t pid) const;
  /// To every process but `except` (0: to all). A process id that is used again meanwhile is not hit.
  void signal_all(int signal, pid_t except = 0) const;
  static constexpr std::chrono::seconds kKillTimeout{10};
  /// SIGKILL until nobody is left; kTimeout when somebody stays (a process stuck in the kernel).
  Status kill_all(std::chrono::milliseconds timeout = kKillTimeout) const;
  /// How many processes the kernel has killed in it for want of memory.
  std::uint64_t out_of_memory_kills() const;
  /// Its directory in the tree of version 2. kUnsupported where that is not the only one: then it is not what
  /// a runtime puts containers into.
  Result<std::string> unified_folder() const;
  /// Removes the empty group, and those inside of it, from every hierarchy. Absent is fine.
  void remove() const;

 private:
  std::string folder(const Hierarchy& hierarchy) const { return hierarchy.mount + path_; }

  std::vector<Hierarchy> hierarchies_;
  std::string path_;
};

}  // namespace drover::container
