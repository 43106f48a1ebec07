#pragma once

// Queues and quotas that this daemon was given, as objects of the cluster, which its scheduler keeps to
// (kube/scheduler/sharing/rules.h): a queue's users are namespaces there, and so is whom a quota is for.
// Pure.

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/result.h"
#include "kube/client/object.h"
#include "placement/queues.h"
#include "pods/pod_writer.h"

namespace drover::pods {

/// The namespace of the pods of a user, by the user's name.
using NameSpaceOf = std::function<std::string(const std::string& user)>;

struct RuleObject {
  kube::ObjectPath path;
  nlohmann::json object;  ///< whole, with the journal's label
};

/// All that a cluster cannot be told, each with its place (placement::validate()).
Status check_rules(const placement::Rules& rules, const PodSettings& settings);

/// Of rules that check_rules() finds sound.
std::vector<RuleObject> write_rules(const placement::Rules& rules, const std::string& journal,
                                    const NameSpaceOf& name_space_of);

}  // namespace drover::pods
