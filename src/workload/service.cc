#include "workload/service.h"

#include <algorithm>

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

std::string_view path_trouble(std::string_view path) {
  if (!path.starts_with('/')) return "must begin with a slash";
  const auto breaks_the_line = [](unsigned char c) { return c <= ' ' || c == 0x7f; };
  if (std::ranges::any_of(path, breaks_the_line)) return "must not contain spaces or control characters";
  return "";
}

}  // namespace drover::workload
