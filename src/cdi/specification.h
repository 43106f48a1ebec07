#pragma once

// A specification of the Container Device Interface (cncf-tags/container-device-interface, SPEC.md, up to
// 1.1.0): which devices of one kind a machine has, and how a container's OCI configuration is edited so that
// it gets them. Values only; thread safe as values are.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace drover::cdi {

/// Where container engines look, in the order of precedence: what the later one says of a device counts.
inline constexpr const char* kFolders[] = {"/etc/cdi", "/var/run/cdi"};

struct DeviceNode {
  std::string path;                          ///< in the container
  std::string host_path;                     ///< "": the same
  std::string type;                          ///< "c", "b", "u", "p"; "": as on the host
  std::optional<std::int64_t> major, minor;  ///< absent: as on the host
  std::optional<std::uint32_t> file_mode;
  std::string permissions;  ///< of "rwm"; "" is all of them, "none" is none
  std::optional<std::uint32_t> uid, gid;

  bool operator==(const DeviceNode&) const = default;
};

struct Mount {
  std::string host_path;
  std::string container_path;
  std::string type;  ///< "" for a bind mount
  std::vector<std::string> options;

  bool operator==(const Mount&) const = default;
};

struct Hook {
  std::string name;                      ///< "createContainer" and its like
  std::string path;                      ///< of the program on the host
  std::vector<std::string> arguments;    ///< from [0] on
  std::vector<std::string> environment;  ///< "NAME=value"
  std::optional<int> timeout_seconds;

  bool operator==(const Hook&) const = default;
};

struct NetDevice {
  std::string host_interface;
  std::string name;  ///< in the container

  bool operator==(const NetDevice&) const = default;
};

struct IntelRdt {
  std::string clos_id, l3_cache_schema, memory_bandwidth_schema;
  bool enable_cmt = false, enable_mbm = false;  ///< until 1.0.0
  std::vector<std::string> schemata;            ///< from 1.1.0 on
  bool enable_monitoring = false;               ///< from 1.1.0 on

  bool operator==(const IntelRdt&) const = default;
};

/// What is done to a container.
struct Edits {
  std::vector<std::string> environment;  ///< "NAME=value"
  std::vector<DeviceNode> device_nodes;
  std::vector<NetDevice> net_devices;
  std::vector<Mount> mounts;
  std::vector<Hook> hooks;
  std::optional<IntelRdt> intel_rdt;
  std::vector<std::uint32_t> additional_gids;

  bool empty() const { return *this == Edits{}; }
  /// Adds what `more` has behind what is there.
  void append(const Edits& more);
  bool operator==(const Edits&) const = default;
};

struct Device {
  std::string name;
  std::map<std::string, std::string> annotations;
  Edits edits;

  bool operator==(const Device&) const = default;
};

struct Specification {
  std::string version;  ///< "0.5.0"
  std::string kind;     ///< "nvidia.com/gpu"
  std::map<std::string, std::string> annotations;
  std::vector<Device> devices;
  Edits edits;  ///< for every container that gets any of the devices

  bool operator==(const Specification&) const = default;
};

/// The lowest version of the interface that knows everything that is used here. Readers refuse a
/// specification that names a lower one.
std::string required_version(const Specification& specification);
/// Whether it was ever released; "v0.5.0" is the same as "0.5.0".
bool is_known_version(const std::string& version);
/// Of known versions.
bool is_older(const std::string& version, const std::string& than);

}  // namespace drover::cdi
