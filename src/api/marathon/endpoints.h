#pragma once

// Where apps can be reached, as lines of text: what programs that configure proxies read. Pure.

#include <string>
#include <string_view>
#include <vector>

#include "api/http.h"
#include "api/marathon/world.h"

namespace drover::api::marathon_v2 {

/// Whether an `Accept` header prefers text/plain to JSON. JSON is what those get to whom both are the same.
bool prefers_text(std::string_view accept);
bool wants_text(const Request& request);

/// One line for each service port of each app: "shop_web", tab, "10000", tab, and "gpu1:31002" with a tab
/// behind it for each instance that runs. Of an app without ports: a blank for the port, and only the hosts.
/// The format is that of Marathon's EndpointsHelper.
std::string endpoints_text(const World& world, const std::vector<const control::ServiceRecord*>& apps);

}  // namespace drover::api::marathon_v2
