#pragma once

// How the Marathon API answers: its headers, its errors, and what every change of services comes back with.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "api/http.h"
#include "api/router.h"
#include "marathon/refusal.h"

namespace drover::api::marathon_v2 {

using marathon::Decoded;
using marathon::Refusal;

/// JSON with the headers that every answer of Marathon has.
Response answer(const Services& services, std::string json, int status = 200);
/// {"message": …}
Response refuse(const Services& services, int status, const std::string& message);
Response refuse(const Services& services, const Refusal& refusal);
/// An Error of Drover in Marathon's shape.
Response refuse(const Services& services, const Error& error);
/// 403: what the caller would change belongs to somebody else.
Response not_his(const Services& services);
/// 409: deployments under way touch what is to be changed.
Response locked(const Services& services, const std::vector<std::string>& deployments);

/// Adds the header by which clients learn what to wait for.
Response with_deployment(Response response, const std::string& id);
/// {"version", "deploymentId"}, with that header.
Response deployment_result(const Services& services, const std::string& id, TimePoint version,
                           int status = 200);

/// The body as JSON, or why it is none.
Decoded<nlohmann::json> body_of(const Request& request);

/// What is after "?name=", or otherwise; anything but "true" is false.
bool flag(const Request& request, const std::string& name, bool otherwise = false);
/// Every value of a parameter that may be repeated, also as "name[]", and with several in one, by commas.
std::vector<std::string> values(const Request& request, std::string_view name);

}  // namespace drover::api::marathon_v2
