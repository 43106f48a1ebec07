#pragma once

// On which nodes a pod may be, in the words of Kubernetes: attributes of nodes are their labels, and what
// holds between the instances of a service is said of their pods. Pure.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/result.h"
#include "workload/node_rule.h"
#include "workload/task.h"

namespace drover::pods {

/// Of an instance: which service it is of. A number beside it is its set (NodeRule).
inline constexpr const char* kServiceLabel = "drover.dev/service";
inline constexpr const char* kSetLabel = "drover.dev/set";
/// Of a node, its name: what "hostname" is among attributes.
inline constexpr const char* kHostName = "kubernetes.io/hostname";

/// "/shop/web" → "shop_web"; what no label can have goes by its digest.
std::string service_label(const std::string& service);

/// Names and values of attributes that no label has.
Status check_place(const workload::Task& task, const std::vector<workload::NodeRule>& rules);

/// Adds to the pod's spec and labels, which have the journal's already.
void write_place(const workload::Task& task, const std::vector<workload::NodeRule>& rules,
                 nlohmann::json& spec, nlohmann::json& labels);

}  // namespace drover::pods
