#include "container/device_plan.h"

#include <fmt/format.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "container/volume_plan.h"

namespace drover::container {
namespace {

using nlohmann::json;

constexpr mode_t kUsualMode = 0666;

}  // namespace

Result<std::vector<DevicePlan>> take_devices(json& configuration) {
  std::vector<DevicePlan> devices;
  for (const auto& node : configuration["linux"]["devices"]) {
    const auto path = plain_path(node["path"].get<std::string>());
    if (!path.starts_with(kDeviceFolder))
      return fail(ErrorKind::kUnsupported,
                  fmt::format("A device wants a node at '{}', outside of /dev", path),
                  "its CDI specification must be changed");
    devices.push_back({path.substr(kDeviceFolder.size()), node["type"], node.value("major", 0U),
                       node.value("minor", 0U), node.value("fileMode", kUsualMode), node.value("uid", 0U),
                       node.value("gid", 0U)});
  }
  configuration["linux"]["devices"] = json::array();
  return devices;
}

json encode_devices(const std::vector<DevicePlan>& devices) {
  auto list = json::array();
  for (const auto& device : devices)
    list.push_back({{"path", device.path},
                    {"type", device.type},
                    {"major", device.major},
                    {"minor", device.minor},
                    {"mode", device.mode},
                    {"uid", device.uid},
                    {"gid", device.gid}});
  return list;
}

DevicePlan read_device(Decoder decoder) {
  const auto number = [&](const char* name) {
    return static_cast<std::uint32_t>(
        decoder.integer(name, 0, std::numeric_limits<std::uint32_t>::max()).value_or(0));
  };
  DevicePlan device;
  device.path = decoder.string("path").value_or("");
  device.type = decoder.string("type").value_or("");
  device.major = number("major");
  device.minor = number("minor");
  device.mode = number("mode");
  device.uid = number("uid");
  device.gid = number("gid");
  decoder.finish();
  return device;
}

}  // namespace drover::container
