#pragma once

// Writes pods, and what they need beside them: the namespace of their user, and the objects that stand for
// priorities. Whatever is written may be written again. Thread safe; blocks; errors are those of kube::Api.

#include <chrono>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <stop_token>
#include <string>

#include "base/result.h"
#include "kube/client/api.h"
#include "pods/pod_view.h"

namespace drover::pods {

inline const kube::Resource kPriorityClasses = {"scheduling.k8s.io", "v1", "priorityclasses"};
inline const kube::Resource kClaims = {"resource.k8s.io", "v1", "resourceclaims"};

class PodStore {
 public:
  explicit PodStore(kube::Api& api) : api_(api) {}

  /// Makes the pod of write_pod(), for a task of this priority, and what it waits for. Where one of its name
  /// is there it is the answer when it stands for the same attempt, by its labels; another one is a
  /// kConflict. `secrets`: what stands beside it instead of in it.
  Result<nlohmann::json> make(const nlohmann::json& pod, int priority,
                              const std::map<std::string, std::string>& secrets = {});
  /// The claim that a pod of make() waits for, if it needs one, with the pod among its owners. kUnavailable
  /// as long as another one of its name is on its way out; kUnsupported when this API server keeps no shares.
  Status ensure_claim(const nlohmann::json& pod);
  /// What its node says of the pod's shares of GPUs (gpu/share_tier.h), in its claim; "" where it has none,
  /// and where it cannot be asked; nullopt while nothing is said.
  std::optional<std::string> tier_of(const PodView& pod);
  /// What stands there now; none: nothing.
  Result<std::optional<nlohmann::json>> look(const kube::ObjectPath& path);
  /// Its container is told to end, and killed after the time that the pod says, or at once. None: it is gone.
  /// `uid`: of the one that is meant; "": whichever.
  Result<std::optional<nlohmann::json>> remove(const kube::ObjectPath& path, const std::string& uid,
                                               bool at_once);
  /// Lets go of it: it is deleted where it was not, and vanishes once its node has ended it.
  Status release(const PodView& pod);

 private:
  Result<nlohmann::json> make_whole(const nlohmann::json& pod,
                                    const std::map<std::string, std::string>& secrets);
  Status put_secret(const nlohmann::json& pod, const std::map<std::string, std::string>& secrets);
  Result<nlohmann::json> join_claim(const kube::ObjectPath& path, const nlohmann::json& pod);
  Result<nlohmann::json> with_owner(nlohmann::json pod);
  /// Of the namespace, which is made where there is none; "" where that may not be read.
  Result<std::string> uid_of_name_space(const std::string& name);
  Result<nlohmann::json> make_name_space(const std::string& name);
  Status ensure_priority(int priority);

  kube::Api& api_;
  std::mutex mutex_;
  std::set<int> priorities_;  ///< that there are, as far as was seen
  struct NameSpace {
    std::string uid;
    std::chrono::steady_clock::time_point seen_at;
  };
  std::map<std::string, NameSpace> name_spaces_;
};

kube::ObjectPath path_of(const PodView& pod);

}  // namespace drover::pods
