#pragma once

// GPUs that a task has not alone, as claims of devices (resource.k8s.io/v1): a share of one, which the task's
// pod owns, and the GPUs of a group, which the pods of all its members own together. The cluster removes a
// claim with the last of its owners, so that nobody here has to remember any. Pure.

#include <nlohmann/json.hpp>
#include <string>

#include "pods/pod_view.h"
#include "workload/task.h"

namespace drover::pods {

/// Of a pod: what its claim asks for, so that the claim can be made by whoever finds the pod.
inline constexpr const char* kClaimAnnotation = "drover.dev/gpu-claim";
/// The class of whole GPUs, and its driver, which is NVIDIA's or ours.
inline constexpr const char* kGpuClass = "gpu.nvidia.com";

/// Whether its GPUs come by a claim, and not by limits.
bool needs_claim(const workload::Resources& wanted);

/// What the claim asks for; for a task that needs one.
nlohmann::json claim_spec(const workload::Resources& wanted);

/// In the namespace of the task's user: that of a group by what all members say, any other by the pod's.
std::string claim_name(const workload::Task& task, const std::string& journal, const std::string& pod);

/// Adds it to a pod's metadata and spec, and to the resources of its container.
void refer_to_claim(const workload::Task& task, const std::string& journal, nlohmann::json& metadata,
                    nlohmann::json& spec, nlohmann::json& container);

/// The claim that a pod needs, which is there and has a uid; null: none of ours.
nlohmann::json write_claim(const nlohmann::json& pod);

/// As an owner of its claim.
nlohmann::json owner_of_claim(const nlohmann::json& pod);

/// Whether a claim is one that write_claim() made, and still asks for the same. An API server that knows
/// nothing of shares keeps nothing of them.
bool asks_for_the_same(const nlohmann::json& claim, const nlohmann::json& written);

/// Whether it asks for parts of GPUs.
bool asks_for_shares(const nlohmann::json& claim);

/// Whether a pod waits for a claim that is not there (any more), by what its scheduler says.
bool lacks_claim(const PodView& view);

}  // namespace drover::pods
