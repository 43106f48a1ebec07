#pragma once

// Where Marathon's and Chronos' APIs have their things. What is not there comes back as kNotFound with the
// name that was probably meant.

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/client.h"

namespace drover::cli {

/// "/v2/apps/shop/web" and `rest`; kInvalid when `id` is none. Ids may be written without a leading slash.
Result<std::string> app_target(const std::string& id, const std::string& rest = "");
std::string job_target(const std::string& name, const std::string& rest = "");

/// The app as the API shows it, with its counts, tasks and deployments.
Result<nlohmann::json> get_app(const Client& client, const std::string& id);
Result<nlohmann::json> get_job(const Client& client, const std::string& name);

/// Every app; every job.
Result<std::vector<nlohmann::json>> list_apps(const Client& client);
Result<std::vector<nlohmann::json>> list_jobs(const Client& client);

/// The deployments under way.
Result<std::vector<nlohmann::json>> list_deployments(const Client& client);

/// `error`, and when it is kNotFound and one of `known` is near to `name`, that one as its hint.
Error with_nearest(Error error, const std::string& name, const std::set<std::string>& known);

/// The id of the deployment that an answer of Marathon's API tells; "" for none.
std::string deployment_of(const nlohmann::json& answer);

}  // namespace drover::cli
