#pragma once

// MPS for groups of tasks: one control daemon for the tasks of one user that share whole GPUs, there before
// the first of them has a container and gone before the end of the last one is told, so before anybody else
// is given its GPUs. Of which group a task is stands in its folder (the file `mps`) before anything is done,
// and until nothing of it is left; so whoever is killed in between leaves nothing that the next start does
// not know.
//
// Thread safe; calls for one task are made one at a time. Blocks while NVIDIA's programs answer, which has
// deadlines.

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/result.h"
#include "share/mps_daemons.h"

namespace drover::container {

/// Starts and ends the daemons, by the names of groups. Thread safe; blocks.
class MpsMaker {
 public:
  virtual ~MpsMaker() = default;
  /// For these GPUs, by UUID. Of a group that has one already: the same again.
  virtual Result<share::MpsPlaces> make(const std::string& group, const std::vector<std::string>& gpus) = 0;
  /// An Error as long as anything of it is left. A group that has none is fine.
  virtual Status end(const std::string& group) = 0;
  /// Ends all but those of these groups.
  virtual Status keep_only(const std::set<std::string>& groups) = 0;
};

class MpsBook {
 public:
  /// With what the task folders below <state>/tasks say; daemons of other groups are ended.
  static Result<std::unique_ptr<MpsBook>> open(const std::string& state, std::unique_ptr<MpsMaker> maker);

  /// The task is one of the group from now on, whose daemon runs when this returns. On an Error the task may
  /// be one all the same: leave() takes it out.
  Result<share::MpsPlaces> join(const Directory& folder, const std::string& task_id, const std::string& group,
                                const std::vector<std::string>& gpus);
  /// Ends the daemon with the last one. Idempotent. On an Error the task is still one of the group.
  Status leave(const Directory& folder, const std::string& task_id);

 private:
  explicit MpsBook(std::unique_ptr<MpsMaker> maker) : maker_(std::move(maker)) {}

  /// "" for a task that is in none.
  std::string group_of(const std::string& task_id) const;
  bool is_alone(const std::string& group) const;

  std::unique_ptr<MpsMaker> maker_;
  std::mutex changing_;                         ///< held while a daemon is started or ended
  mutable std::mutex mutex_;                    ///< never for long: every task's end asks
  std::map<std::string, std::string> members_;  ///< groups by task
};

}  // namespace drover::container
