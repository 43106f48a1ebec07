#pragma once

// Queues and quotas out of files, beside those of the daemon.

#include <nlohmann/json.hpp>
#include <vector>

#include "base/result.h"
#include "cli/client.h"
#include "cli/definitions/definition.h"
#include "cli/services/changes.h"

namespace drover::cli {

/// What a queue or a quota would change. `existing` are those that the API lists.
Change change_of_rule(const Definition& definition, const std::vector<nlohmann::json>& existing);

/// As GET /v1/queues and GET /v1/quotas list them.
Result<std::vector<nlohmann::json>> list_queues(const Client& client);
Result<std::vector<nlohmann::json>> list_quotas(const Client& client);

}  // namespace drover::cli
