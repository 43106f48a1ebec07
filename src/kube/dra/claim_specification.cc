#include "kube/dra/claim_specification.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>
#include <utility>

#include "kube/dra/devices.h"

namespace drover::kube::dra {
namespace {

std::string device_name_in_claim(const std::string& uid, const AllocatedDevice& device) {
  auto name = uid + "-" + device.device;
  return device.share_id.empty() ? name : name + "-" + device.share_id;
}

/// "gpu-3" → "DROVER_GPU_3".
std::string variable_of(const std::string& device) {
  return "DROVER_GPU_" + device.substr(device.find('-') + 1);
}

std::vector<std::string> share_variables(const AllocatedDevice& device) {
  std::vector<std::string> variables;
  const auto name = variable_of(device.device);
  if (device.share)
    variables.push_back(fmt::format("{}_SHARE={:g}", name, static_cast<double>(*device.share) / kWholeGpu));
  if (device.memory) variables.push_back(fmt::format("{}_MEMORY={}", name, *device.memory));
  return variables;
}

/// A container may have one request of several, and the UUID of an instance is known when it is made.
std::string visible_devices(const PreparedClaim& claim) {
  std::set<std::string> uuids;
  for (const auto& device : claim.devices) {
    const bool is_told =
        claim.sole && !device.made && device.allocated.request == claim.devices.front().allocated.request;
    if (!is_told) return "void";
    uuids.insert(device.uuid);
  }
  return uuids.empty() ? "void" : fmt::format("{}", fmt::join(uuids, ","));
}

}  // namespace

std::string cdi_vendor(const std::string& driver) {
  return "k8s." + driver;
}

std::string cdi_device_id(const std::string& driver, const std::string& uid, const AllocatedDevice& device) {
  return fmt::format("{}/claim={}", cdi_vendor(driver), device_name_in_claim(uid, device));
}

Result<cdi::Specification> claim_specification(const std::string& driver, const PreparedClaim& claim,
                                               const GpuEdits& edits, const std::string& pages) {
  cdi::Specification specification;
  specification.kind = cdi_vendor(driver) + "/claim";
  specification.edits.environment = {"NVIDIA_VISIBLE_DEVICES=" + visible_devices(claim)};
  specification.edits.append(claim.limits.empty() ? edits.common : guarded_edits(edits, pages));
  for (const auto& device : claim.devices) {
    const auto& known = device.mig ? edits.of_mig : edits.of_gpu;
    const auto found = known.find(device.mig ? device.allocated.device : device.uuid);
    if (found == known.end())
      return fail(
          ErrorKind::kNotFound,
          fmt::format("the GPU '{}' ({}) has no device node now", device.allocated.device, device.uuid),
          "'drover gpus' says what is the matter with it");
    auto made = found->second;
    for (auto& variable : share_variables(device.allocated)) made.environment.push_back(std::move(variable));
    specification.devices.push_back(
        {device_name_in_claim(claim.reference.uid, device.allocated), {}, std::move(made)});
  }
  specification.version = cdi::required_version(specification);
  return specification;
}

}  // namespace drover::kube::dra
