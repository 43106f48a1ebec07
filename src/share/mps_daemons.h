#pragma once

// MPS control daemons, one for each owner, with a folder each: a small file system in memory of its own, so
// that nobody who has it can fill the machine's disk. In it are the folders that containers get, `pipe` to
// read and `shm` to write, and `log`, which they do not get.
//
// A daemon has its folder at /mnt, and `shm` at /dev/shm: the servers that it starts run as the users of its
// clients, who may go into no folder of ours. By that mount all its processes are known, and those that tell
// it something, so whoever comes after one who was killed finds them all, and ends them. Nobody else can be
// taken for one: containers get two folders of the file system, and not its root. Blocks; not thread safe.

#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/spawn.h"
#include "share/arrangement.h"
#include "share/gpu_settings.h"

namespace drover::share {

/// What containers get of a daemon, on this machine.
struct MpsPlaces {
  std::string pipe;  ///< for reading, at kMpsPipe or elsewhere, of which they are told by kMpsPipeVariable
  std::string shm;   ///< for writing, at kMpsShm
};
inline constexpr const char* kMpsPipe = "/tmp/nvidia-mps";
inline constexpr const char* kMpsShm = "/dev/shm";
inline constexpr const char* kMpsPipeVariable = "CUDA_MPS_PIPE_DIRECTORY";

struct MpsMount {
  std::string source, destination;
  bool writable = false;
};
/// The same as mounts, none of which lets anything be run or opened as a device.
std::vector<MpsMount> mps_mounts(const MpsPlaces& places, const std::string& pipe);

class MpsDaemons {
 public:
  /// Nobody else may write to `folder`. `proc` is a folder that is mounted as /proc.
  explicit MpsDaemons(std::string folder, std::string proc = "/proc");

  MpsPlaces places(const std::string& owner) const;
  /// Ends what there is of an earlier one, whose folder stays, as containers have it. Returns when the daemon
  /// answers, and has the limits; otherwise nothing but the folder is left of it. kPermissionDenied where
  /// nothing may be mounted.
  Status start(const std::string& owner, const MpsLimits& limits, const Programs& programs);
  bool runs(const std::string& owner);
  /// Asks it to end, and ends whatever of it is left after some seconds; then its folder goes. One that is
  /// not there is fine. `programs` may be null: then nobody is asked. kTimeout when a process does not end.
  Status end(const std::string& owner, const Programs* programs);
  /// Who has a folder.
  Result<std::vector<std::string>> owners() const;
  /// Processes of all daemons, and of their servers.
  std::set<pid_t> processes() const;

 private:
  struct Process {
    pid_t pid = 0;
    UniqueFd descriptor;
    bool is_control =
        false;  ///< and no server of its, which is in its session, and none that tells it something
  };
  std::string folder_of(const std::string& owner) const { return folder_ + "/" + owner; }
  std::vector<Process> processes_of(const std::string& owner) const;
  Status end_processes(const std::string& owner, const Programs* programs);
  Status make_folder(const std::string& owner) const;
  Status remove_folder(const std::string& owner) const;
  Status launch(const std::string& owner, const MpsLimits& limits, const Programs& programs);
  Status set_limits(const std::string& owner, const MpsLimits& limits, const Programs& programs);
  Result<bool> tell(const std::string& owner, const Programs& programs, const std::string& words) const;
  std::string last_words(const std::string& owner) const;

  const std::string folder_, proc_;
  std::map<std::string, Spawned> running_;  ///< by owner, of those that were seen
};

/// What the daemon is told of the limits, a line each.
std::string mps_commands(const MpsLimits& limits);

}  // namespace drover::share
