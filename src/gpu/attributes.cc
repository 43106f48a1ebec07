#include "gpu/attributes.h"

#include <set>

namespace drover::gpu {

std::map<std::string, std::vector<std::string>> attributes_of(const Inventory& inventory) {
  std::set<std::string> models;
  for (const auto& device : inventory.devices) models.insert(device.model);
  models.erase("");
  std::map<std::string, std::vector<std::string>> attributes;
  if (!models.empty()) attributes["gpu_model"] = {models.begin(), models.end()};
  if (!inventory.driver_version.empty()) attributes["driver"] = {inventory.driver_version};
  if (!inventory.cuda_version.empty()) attributes["cuda"] = {inventory.cuda_version};
  return attributes;
}

}  // namespace drover::gpu
