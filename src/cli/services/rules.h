#pragma once

// Queues and quotas: those of the daemon, what files would change of them, and what cannot be.

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/client.h"
#include "cli/context.h"
#include "cli/definitions/definition.h"
#include "cli/services/changes.h"

namespace drover::cli {

/// What a queue or a quota would change. `existing` are those that the API lists.
Change change_of_rule(const Definition& definition, const std::vector<nlohmann::json>& existing);

/// As GET /v1/queues and GET /v1/quotas list them; `what` is "queues" or "quotas".
Result<std::vector<nlohmann::json>> list_rules(const Client& client, const std::string& what);

/// Says on standard error what of these can never come true: guarantees that are more than there is, and
/// users whom this machine does not know, where the daemon is on it.
void report_doubts(const Context& context, const Client& client, const std::vector<nlohmann::json>& queues,
                   const std::vector<nlohmann::json>& quotas);

}  // namespace drover::cli
