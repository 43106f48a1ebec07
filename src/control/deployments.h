#pragma once

// The steps of a deployment, and how it goes through them. Pure.

#include <map>
#include <string>
#include <vector>

#include "control/draft.h"
#include "control/service_record.h"

namespace drover::control {

/// The ids in an order in which none comes before what it depends on, level by level: those of one level do
/// not depend on each other. A dependency on a group is one on everything in it; on what is not there, none.
/// kInvalid when some depend on each other in a circle.
Result<std::vector<std::vector<std::string>>> levels_of(
    const std::map<std::string, std::vector<std::string>>& dependencies);

/// What is to be done so that these services, whose targets are set, come to be as they want: first what goes
/// away, then what is new, then level by level what changes. Empty when there is nothing to be done.
Result<std::vector<std::vector<DeploymentAction>>> steps_for(const Draft& draft,
                                                             const std::set<std::string>& services);

/// Begins the next step of each deployment whose last one is done, and ends those that are through. Returns
/// the services that changed by it.
std::set<std::string> advance_deployments(Draft& draft);

}  // namespace drover::control
