#pragma once

// The sandboxes of one node, as folders: a live one is where the kubelet wants a pod's volume,
// <kubelet>/pods/<uid>/volumes/kubernetes.io~csi/<volume>/mount. When the pod is over it is renamed into
// <kubelet>/plugins/sandbox.drover.dev/kept/<uid>, and stays there until somebody says that nobody wants it
// any more, or its time is over. A record beside it says whose it is. Each step may be repeated, and a kill
// between two of them loses nothing.
//
// What is inside belongs to tenants; the folders above do not. Nothing outside of these two places is
// touched, and no link is followed. Blocks; thread safe.

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"
#include "base/result.h"
#include "base/units.h"

namespace drover::kube {

/// As the kubelet tells of it, when it wants a volume for a pod.
struct SandboxOrder {
  std::string volume;  ///< the volume's id
  std::string target;  ///< where it is to be
  std::string uid;     ///< the pod's, and where and how it is called
  std::string name_space, pod;
  std::string owner;  ///< "uid:gid"; "": root's, and everybody may write to it
};

struct SandboxInfo {
  std::string uid, name_space, pod;
  bool live = true;
  std::uint64_t bytes = 0;  ///< when it was measured last
};

class SandboxStore {
 public:
  /// `kubelet`: its folder.
  static Result<SandboxStore> open(const std::string& kubelet);
  SandboxStore(SandboxStore&&) noexcept;

  /// Its own, which only root may enter.
  const Directory& folder() const { return own_; }
  /// Makes the sandbox, or leaves it as it is. One a pod.
  Status publish(const SandboxOrder& order);
  /// Keeps it, unless it was removed meanwhile. Fine when it is gone.
  Status unpublish(const std::string& volume, const std::string& target);

  std::vector<SandboxInfo> list() const;
  /// kNotFound when there is none of this pod.
  Result<Directory> find(const std::string& uid) const;
  /// Whether the pod still has its sandbox; kNotFound when there is none of this pod.
  Result<bool> is_live(const std::string& uid) const;
  /// Nobody wants it: it goes at once, or with its pod. Fine when it is gone.
  Status remove(const std::string& uid);

  /// Measures all. Ends those kept ones that ended before `kept_since`, and the oldest as long as less than a
  /// tenth of the file system is free. By one thread.
  Status tidy(TimePoint kept_since);

 private:
  struct Record;
  struct Place;

  SandboxStore(Directory kubelet, Directory own, Directory records, Directory kept, Directory gone);
  Result<Place> place_of(const std::string& target) const;
  Result<Directory> volume_folder(const Place& place) const;
  Result<Record> read(const std::string& uid) const;
  Status write(const std::string& uid, const Record& record) const;
  std::map<std::string, Record> records() const;
  Result<Directory> find(const std::string& uid, const Record& record) const;
  Status discard(const std::string& uid);
  Status empty_gone() const;
  Status measure(const std::map<std::string, Record>& all);
  bool is_full() const;

  Directory kubelet_, own_, records_, kept_, gone_;
  mutable std::mutex mutex_;  ///< of what changes
  struct Size {
    std::uint64_t bytes = 0;
    bool is_final = false;  ///< nothing is written there any more
  };
  std::map<std::string, Size> sizes_;  ///< by uid
};

/// What Kubernetes gives each object as its uid.
bool is_uid(std::string_view text);

}  // namespace drover::kube
