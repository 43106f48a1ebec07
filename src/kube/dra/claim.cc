#include "kube/dra/claim.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/shorten.h"
#include "kube/dra/quantity.h"

namespace drover::kube::dra {
namespace {

using nlohmann::json;

/// The API's limit.
constexpr std::size_t kMostResults = 32;
constexpr std::size_t kLongestText = 253;

const json& at(const json& object, const char* name) {
  static const json nothing;
  if (!object.is_object()) return nothing;
  const auto found = object.find(name);
  return found == object.end() ? nothing : *found;
}

Result<std::string> text_of(const json& object, const char* name) {
  const auto& value = at(object, name);
  if (value.is_null()) return std::string();
  if (!value.is_string() || value.get_ref<const std::string&>().size() > kLongestText)
    return fail(ErrorKind::kInvalid,
                fmt::format("'{}' of an allocated device is no text, or too long", name));
  return value.get<std::string>();
}

/// The API server gives names back as the driver publishes them, or with the driver's name.
Result<std::optional<std::int64_t>> consumed(const json& result, const std::string& driver,
                                             const std::string& name) {
  const auto& amounts = at(result, "consumedCapacity");
  for (const auto& spelling : {name, driver + "/" + name}) {
    const auto& amount = at(amounts, spelling.c_str());
    if (amount.is_null()) continue;
    if (!amount.is_string() && !amount.is_number_unsigned())
      return fail(ErrorKind::kInvalid, fmt::format("the consumed capacity '{}' is no quantity", name));
    DROVER_TRY(const auto value,
               parse_quantity(amount.is_string() ? amount.get<std::string>() : amount.dump()));
    return value;
  }
  return std::nullopt;
}

Result<AllocatedDevice> device_of(const json& result, const std::string& driver) {
  AllocatedDevice device;
  DROVER_TRY(const auto request, text_of(result, "request"));
  device.request = request.substr(0, request.find('/'));
  DROVER_TRY(device.device, text_of(result, "device"));
  DROVER_TRY(device.share_id, text_of(result, "shareID"));
  DROVER_TRY(device.memory, consumed(result, driver, "memory"));
  DROVER_TRY(device.share, consumed(result, driver, "share"));
  // A GPU shared by thousandths tells of its memory too, of which nothing is taken then.
  if (device.share) device.memory.reset();
  device.admin = at(result, "adminAccess") == true;
  const auto& tolerations = at(result, "tolerations");
  device.tolerant = tolerations.is_array() && !tolerations.empty();
  return device;
}

Status check_is_same(const json& claim, const ClaimReference& reference) {
  DROVER_TRY(const auto uid, text_of(at(claim, "metadata"), "uid"));
  if (uid == reference.uid) return {};
  return fail(ErrorKind::kConflict,
              fmt::format("the claim {} is another one by now: its uid is '{}' and not '{}'",
                          to_string(reference), uid, reference.uid));
}

}  // namespace

bool is_sole(const json& claim) {
  return at(at(at(claim, "metadata"), "annotations"), kSoleAnnotation) == "true";
}

std::string to_string(const ClaimReference& claim) {
  return fmt::format("'{}/{}'", shortened(claim.namespace_name), shortened(claim.name));
}

Result<std::vector<AllocatedDevice>> allocated_devices(const json& claim, const ClaimReference& reference,
                                                       const std::string& driver, const std::string& pool) {
  DROVER_CHECK_OK(check_is_same(claim, reference));
  const auto& status = at(claim, "status");
  const auto& allocation = at(at(status, "allocation"), "devices");
  const auto& results = at(allocation, "results");
  if (!results.is_array() || results.empty())
    return fail(ErrorKind::kConflict,
                fmt::format("the claim {} has no devices allocated", to_string(reference)));
  if (const auto& reserved = at(status, "reservedFor"); !reserved.is_array() || reserved.empty())
    return fail(ErrorKind::kConflict,
                fmt::format("the claim {} is reserved for no pod", to_string(reference)));
  if (results.size() > kMostResults)
    return fail(ErrorKind::kInvalid,
                fmt::format("the claim {} has more than {} devices", to_string(reference), kMostResults));
  DROVER_TRY(const auto configuration, read_configuration(at(allocation, "config"), driver));
  std::vector<AllocatedDevice> devices;
  for (const auto& result : results) {
    if (at(result, "driver") != driver) continue;
    DROVER_TRY(auto device, device_of(result, driver));
    DROVER_TRY(const auto request, text_of(result, "request"));
    device.sharing = sharing_of(configuration, request);
    if (at(result, "pool") != pool)
      return fail(
          ErrorKind::kInvalid,
          fmt::format("the claim {} has the device '{}' of the pool {}, and this node's is '{}'",
                      to_string(reference), shortened(device.device), at(result, "pool").dump(), pool));
    devices.push_back(std::move(device));
  }
  if (devices.empty())
    return fail(ErrorKind::kInvalid,
                fmt::format("the claim {} has no device of the driver '{}'", to_string(reference), driver));
  return devices;
}

}  // namespace drover::kube::dra
