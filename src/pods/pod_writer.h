#pragma once

// A task as a pod: what it asks for in the words of Kubernetes, and what has none there, refused in ours.
// Pure.
//
// The container runs as the task's user, gains no rights, and gets exactly what it asks for: requests are
// limits, but where the task says others. Its sandbox is a volume of the pod, at the same place as on one
// machine. Where it goes, and which GPUs it gets, is the scheduler's to say.

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "base/result.h"
#include "container/containerizer.h"
#include "kube/scheduler/demand.h"
#include "workload/node_rule.h"
#include "workload/task.h"

namespace drover::pods {

struct PodSettings {
  std::string journal;               ///< its id: whose pods these are
  std::string scheduler = "drover";  ///< spec.schedulerName
  std::string gpu_resource = kube::scheduler::kGpuResource;
  std::string default_image = {};  ///< of tasks that name none; "": those are refused
  std::string helper_image = {};   ///< has Drover, for what is done before a task begins; "": nothing is
  std::string name_space_prefix = "drover-";  ///< before the user's name
  bool host_paths = false;                    ///< whether tasks may have folders of their node
  bool node_sandboxes = false;  ///< whether nodes keep the sandboxes, and tell how busy GPUs are
  bool claims = true;           ///< whether the API server serves claims of devices (resource.k8s.io/v1)
};

/// What helps where nobody looks whether GPUs do nothing.
inline constexpr const char* kIdleHint =
    "agents of nodes do: start the daemon with '--sandboxes node', or leave out the idle_timeout";

/// One attempt.
struct PodOrder {
  const workload::Task& task;
  int attempt = 0;
  const std::map<std::string, std::string>& environment;  ///< all of it
  std::vector<int> ports = {};  ///< by those of the task's network: what they are in the pod, or on the node
  std::vector<workload::NodeRule> node_rules = {};
  std::set<std::string> secrets = {};  ///< variables whose values stand in write_secret() instead
};

/// What DNS takes for a name without dots: small letters, digits and '-', 63 at most.
bool is_dns_label(std::string_view text);

/// A name that DNS takes; unique for ever.
std::string pod_name(const std::string& task, int attempt);

/// Where the pods of a user are; queues and quotas count him by it.
std::string name_space_of(const std::string& user, uid_t uid, const PodSettings& settings);

/// Priorities are objects of the cluster: "" for 0, else the name of the one that has this value.
std::string priority_class(int priority);

/// All that a task is told; what follows from its image and its GPUs is added on its node.
std::map<std::string, std::string> environment_of(container::Launch launch, const PodSettings& settings);

/// Under which the members of a gang find the first one, wherever it is.
std::string gang_address(const std::string& gang, const std::string& name_space);
/// What makes it so, a Service; the pod of the first member owns it.
nlohmann::json write_gang_service(const nlohmann::json& first);

/// The object beside a pod that has these variables of its task, by their names. It goes with the pod once
/// there is one, with a uid.
nlohmann::json write_secret(const nlohmann::json& pod, const std::map<std::string, std::string>& values);

/// All of them as one, which has the place of the first.
Error join(const std::vector<Error>& mistakes);

/// Why a task can never be a pod: what write_pod() would say of it, and rules that no label of a node can
/// keep.
Status check_task(const workload::Task& task, const std::vector<workload::NodeRule>& rules,
                  const PodSettings& settings);

/// The whole object, or all that a pod cannot be; paths are those of the task as people write it.
tl::expected<nlohmann::json, std::vector<Error>> write_pod(const PodOrder& order,
                                                           const PodSettings& settings);

}  // namespace drover::pods
