#pragma once

// The nodes in a container's /dev, as the shim makes them. A runtime makes them as root, or in a user
// namespace binds the machine's own, which then must be there and have the right owners. Values only.

#include <sys/types.h>

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/decode.h"
#include "base/result.h"

namespace drover::container {

inline constexpr std::string_view kDeviceFolder = "/dev/";

struct DevicePlan {
  std::string path;         ///< below /dev: "nvidia0", "dri/card0"
  std::string type;         ///< "c", "b", "u" or "p"
  std::uint32_t major = 0;  ///< not of a "p"
  std::uint32_t minor = 0;
  mode_t mode = 0666;
  uid_t uid = 0;  ///< in the container's terms
  gid_t gid = 0;

  bool operator==(const DevicePlan&) const = default;
};

/// Takes the nodes out of an OCI configuration; the rules for its cgroup stay. kUnsupported for one outside
/// of /dev.
Result<std::vector<DevicePlan>> take_devices(nlohmann::json& configuration);

nlohmann::json encode_devices(const std::vector<DevicePlan>& devices);
DevicePlan read_device(Decoder decoder);

}  // namespace drover::container
