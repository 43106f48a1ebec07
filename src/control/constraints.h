#pragma once

// Where instances of a service may be, as Marathon's constraints say it: UNIQUE, CLUSTER, GROUP_BY, LIKE,
// UNLIKE, MAX_PER and IS. Pure.

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "workload/service.h"

namespace drover::control {

/// What a machine is like: its attributes, each with its values, and "hostname".
using MachineAttributes = std::map<std::string, std::vector<std::string>>;

/// Why a machine may take no (further) instance, in words; none: it may. `others` are the machines of the
/// instances there are, one entry each. What lacks the attribute fits none of them but UNLIKE.
std::optional<std::string> refusal(const workload::PlacementConstraint& constraint,
                                   const MachineAttributes& machine,
                                   const std::vector<MachineAttributes>& others);

/// N of MAX_PER and GROUP_BY; 0 for what is no number.
int amount_in(const workload::PlacementConstraint& constraint);

/// Of these values, those that an expression of LIKE is of.
std::vector<std::string> alike(const std::set<std::string>& values, const std::string& expression);

/// Whether the expressions of LIKE and UNLIKE are such (of RE2: no backtracking, so none takes long), and fit
/// in their limits.
Status check_constraints(const workload::Service& service);

}  // namespace drover::control
