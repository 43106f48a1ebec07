#include "api/marathon/handlers.h"

namespace drover::api::marathon_v2 {

Write beside_of(const Services& services, const Request& request, Scope scope, WriteWorld write) {
  return [&services, request, scope, write, scene = scene_of(services, *request.caller)] {
    return write(services, request, World(scene, scope));
  };
}

}  // namespace drover::api::marathon_v2
