#pragma once

// The pages (share/pages.h) by which containers with a replica of a GPU are held to it, and the CDI devices
// that bring them. The kubelet says neither which pod it asks for nor when a container ends. So each time it
// gives a replica away there are new pages, with an account of their own, under a name that nobody can guess;
// the kubelet keeps that name with the container, and uses it whenever it starts it again. A replica that an
// init container hands on to another of its pod, and one whose next container comes while the last one is
// still dying, are therefore two accounts.
//
// Pages go when nobody has their replica; and when it is given away after a container with it was started,
// for a pod is given all that it has before anything of it starts: then they were of an earlier pod. What is
// on disk says which there are: whoever takes this process's place takes them up. Blocks; thread safe.

#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "cdi/specification_folder.h"
#include "kube/gpu_edits.h"
#include "share/page_folders.h"

namespace drover::kube {

/// A replica as it was given to a container.
struct GuardedReplica {
  std::string name;  ///< of its pages
  std::string id;    ///< "GPU-…::2"
  share::Limit limit;
  std::string pages;  ///< the folder that has them

  bool operator==(const GuardedReplica&) const = default;
};

class ReplicaPages {
 public:
  using Clock = std::chrono::steady_clock;
  /// Whoever is not said to have what he was given by then was not started.
  static constexpr std::chrono::seconds kPatience{60};

  struct Options {
    std::string folder;                       ///< of pages
    std::string cdi_folder;                   ///< of specifications
    std::function<Result<GpuEdits>()> edits;  ///< of guarded containers, as they are now
  };
  explicit ReplicaPages(Options options);

  /// What an earlier process has left. Before anything else is called.
  Status take_up(Clock::time_point now);
  /// New pages for a container that is about to get the replica.
  Result<GuardedReplica> make(const std::string& id, const share::Limit& limit, const GpuEdits& edits,
                              Clock::time_point now);
  /// A container with the replica is about to start: its device is there.
  Status start(const std::string& id);
  /// All devices are there, and bring what they would bring now.
  Status restore() const;
  /// The kubelet was asked then, and says that these replicas are somebody's: the pages of others go.
  Status saw(const std::set<std::string>& held, Clock::time_point asked);

  std::vector<GuardedReplica> replicas() const;

 private:
  struct Known {
    GuardedReplica replica;
    Clock::time_point made;
    bool was_held = false;
    bool was_started = false;  ///< a container with the replica, since then
    bool is_past = false;      ///< of an earlier pod
  };
  Status write(const GuardedReplica& replica, const GpuEdits& edits) const;
  Status remove(const std::string& name);

  const Options options_;
  const share::PageFolders pages_;
  const cdi::SpecificationFolder specifications_;
  mutable std::mutex mutex_;            ///< of what follows, and the files
  std::map<std::string, Known> known_;  ///< by name
};

}  // namespace drover::kube
