#include "workload/service.h"

#include "workload/stored.h"

namespace drover::workload {

bool same_configuration(const Service& a, const Service& b) {
  auto other = b;
  other.instances = a.instances;
  other.dependencies = a.dependencies;
  other.version = a.version;
  other.last_scaling_at = a.last_scaling_at;
  other.last_config_change_at = a.last_config_change_at;
  return a == other;
}

nlohmann::json encode(const Service& service) {
  return service;
}

Result<Service> decode_service(const nlohmann::json& value) {
  return from_stored<Service>(value, "A stored service");
}

}  // namespace drover::workload
