#include "cdi/specification.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace drover::cdi {
namespace {

// Ascending.
constexpr std::array<std::string_view, 12> kVersions = {"0.1.0", "0.2.0", "0.3.0", "0.4.0", "0.5.0", "0.6.0",
                                                        "0.7.0", "0.8.0", "1.0.0", "1.0.1", "1.1.0", "1.1.1"};

std::size_t rank_of(std::string_view version) {
  if (version.starts_with('v')) version.remove_prefix(1);
  return static_cast<std::size_t>(std::find(kVersions.begin(), kVersions.end(), version) - kVersions.begin());
}

template <typename T>
void add(std::vector<T>& to, const std::vector<T>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

std::string_view required_by(const Edits& edits) {
  const auto& rdt = edits.intel_rdt;
  if (!edits.net_devices.empty() || (rdt && (!rdt->schemata.empty() || rdt->enable_monitoring)))
    return "1.1.0";
  if (rdt || !edits.additional_gids.empty()) return "0.7.0";
  for (const auto& node : edits.device_nodes)
    if (!node.host_path.empty()) return "0.5.0";
  for (const auto& mount : edits.mounts)
    if (!mount.type.empty()) return "0.4.0";
  return "0.3.0";
}

}  // namespace

void Edits::append(const Edits& more) {
  add(environment, more.environment);
  add(device_nodes, more.device_nodes);
  add(net_devices, more.net_devices);
  add(mounts, more.mounts);
  add(hooks, more.hooks);
  if (more.intel_rdt) intel_rdt = more.intel_rdt;
  add(additional_gids, more.additional_gids);
}

bool is_known_version(const std::string& version) {
  return rank_of(version) < kVersions.size();
}

bool is_older(const std::string& version, const std::string& than) {
  return rank_of(version) < rank_of(than);
}

std::string required_version(const Specification& specification) {
  std::string_view required = required_by(specification.edits);
  const auto at_least = [&](std::string_view version) {
    if (rank_of(version) > rank_of(required)) required = version;
  };
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  if (!specification.annotations.empty()) at_least("0.6.0");
  if (const auto slash = specification.kind.find('/');
      slash != std::string::npos && specification.kind.find('.', slash) != std::string::npos)
    at_least("0.6.0");
  for (const auto& device : specification.devices) {
    at_least(required_by(device.edits));
    if (!device.annotations.empty()) at_least("0.6.0");
    if (!device.name.empty() && !is_letter(device.name.front())) at_least("0.5.0");
  }
  return std::string(required);
}

}  // namespace drover::cdi
