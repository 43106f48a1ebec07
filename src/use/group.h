#pragma once

// What the kernel counts of a container: by its control group, version 1, 2 or hybrid, and by the network of
// its first process. What it does not count is absent. Paths are the kernel's own; no task chooses any of
// them. Thread safe.

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"
#include "container/cgroup.h"
#include "use/ring.h"

namespace drover::use {

struct GroupReading {
  Counters counters;                                      ///< without the network
  std::optional<std::uint64_t> memory;                    ///< bytes, without files that can be read again
  std::optional<std::uint64_t> memory_total, memory_rss;  ///< with them; with no files at all
  std::optional<double> user_seconds, system_seconds;     ///< of CPU time
};

class Group {
 public:
  Group() = default;
  /// Of the task's container; `first`: its first process, 0 when it is not known.
  static Group find(const std::vector<container::Hierarchy>& hierarchies, const std::string& task,
                    pid_t first);
  /// Nothing of it once it is gone.
  GroupReading read() const;

 private:
  void read_v1(GroupReading& reading) const;
  void read_v2(GroupReading& reading) const;

  std::string cpu_, memory_, disk_, unified_;  ///< directories; "": there is none
};

/// The network of a process that has one of its own.
class OwnNetwork {
 public:
  /// None where it has the machine's, or is not the task's any more. A process that is given its number later
  /// is never taken for it.
  static std::optional<OwnNetwork> find(const std::string& task, pid_t first);
  void read(Counters& counters) const;

 private:
  explicit OwnNetwork(Directory process) : process_(std::move(process)) {}
  Directory process_;
};

// Pure, of the kernel's texts.

/// Of the line "name 123".
std::optional<std::uint64_t> line_of(std::string_view text, std::string_view name);
struct DiskBytes {
  std::uint64_t read = 0, written = 0;
  bool operator==(const DiskBytes&) const = default;
};
DiskBytes parse_io_stat(std::string_view text);           ///< version 2
DiskBytes parse_io_service_bytes(std::string_view text);  ///< version 1
struct NetworkBytes {
  std::uint64_t received = 0, sent = 0;
  bool operator==(const NetworkBytes&) const = default;
};
NetworkBytes parse_net_dev(std::string_view text);  ///< but for the loopback

}  // namespace drover::use
