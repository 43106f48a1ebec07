#include "api/routes.h"

#include <vector>

#include "api/chronos/routes.h"
#include "api/marathon/routes.h"
#include "api/mesos/routes.h"
#include "api/native/routes.h"

namespace drover::api {

std::span<const Route> all_routes() {
  static const std::vector<Route> all = [] {
    std::vector<Route> routes;
    for (const auto table : {native_routes(), marathon_routes(), mesos::routes(), chronos_routes()})
      routes.insert(routes.end(), table.begin(), table.end());
    return routes;
  }();
  return all;
}

}  // namespace drover::api
