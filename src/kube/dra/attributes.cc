#include "kube/dra/attributes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/ranges.h"
#include "gpu/architecture.h"
#include "kube/dra/groups.h"

namespace drover::kube::dra {
namespace {

using nlohmann::json;

constexpr std::size_t kLongestValue = 64;
/// Of NVLink: so that attributes stay below the API's limit of 32. Machines need one or two.
constexpr int kMostDomains = 4;

void set_text(json& attributes, const std::string& name, const std::string& value) {
  if (!value.empty()) attributes[name] = {{"string", value.substr(0, kLongestValue)}};
}

void set_number(json& attributes, const std::string& name, std::optional<int> value) {
  if (value) attributes[name] = {{"int", *value}};
}

void set_version(json& attributes, const std::string& name, const std::string& value) {
  if (const auto version = semantic_version(value)) attributes[name] = {{"version", *version}};
}

/// As NVIDIA's driver spells what libnvidia-container, and so Device::brand, writes in small letters.
std::string brand_label(const std::string& brand) {
  constexpr std::array<std::pair<const char*, const char*>, 17> kBrands{{{"unknown", "Unknown"},
                                                                         {"quadro", "Quadro"},
                                                                         {"tesla", "Tesla"},
                                                                         {"nvs", "NVS"},
                                                                         {"grid", "Grid"},
                                                                         {"geforce", "GeForce"},
                                                                         {"titan", "Titan"},
                                                                         {"vapps", "NvidiaVApps"},
                                                                         {"vpc", "NvidiaVPC"},
                                                                         {"vcs", "NvidiaVCS"},
                                                                         {"vws", "NvidiaVWS"},
                                                                         {"cloudgaming", "NvidiaCloudGaming"},
                                                                         {"quadrortx", "QuadroRTX"},
                                                                         {"nvidiartx", "NvidiaRTX"},
                                                                         {"nvidia", "Nvidia"},
                                                                         {"geforcertx", "GeForceRTX"},
                                                                         {"titanrtx", "TitanRTX"}}};
  const auto found = std::ranges::find(kBrands, brand, [](const auto& pair) { return pair.first; });
  return found == kBrands.end() ? brand : found->second;
}

json facts_of(const View& view, const gpu::Device& device) {
  json attributes = json::object();
  set_text(attributes, "type", "gpu");
  set_text(attributes, "uuid", device.uuid);
  set_text(attributes, "productName", device.model);
  set_text(attributes, "brand", brand_label(device.brand));
  if (const auto& capability = device.compute_capability) {
    set_text(attributes, "architecture", std::string(gpu::architecture_of(*capability)));
    set_version(attributes, "cudaComputeCapability",
                fmt::format("{}.{}", capability->major, capability->minor));
  }
  set_version(attributes, "driverVersion", view.inventory.driver_version);
  set_version(attributes, "cudaDriverVersion", view.inventory.cuda_version);
  if (device.pci) set_text(attributes, "resource.kubernetes.io/pciBusID", gpu::to_string(*device.pci));
  if (const auto root = view.pcie_roots.find(device.uuid); root != view.pcie_roots.end())
    set_text(attributes, "resource.kubernetes.io/pcieRoot", root->second);
  set_number(attributes, "resource.kubernetes.io/numaNode", device.numa_node);
  return attributes;
}

class Groups {
 public:
  explicit Groups(const gpu::Inventory& inventory) : inventory_(inventory) {}

  void add_to(std::vector<json>& attributes) const {
    const auto domains = partitions([this](int a, int b) { return link(a, b).nvlinks; }, kMostDomains);
    for (std::size_t i = 0; i < domains.size(); ++i)
      name_groups(attributes, i == 0 ? "nvlinkDomain" : fmt::format("nvlinkDomain{}", i + 1), domains[i]);
    if (!domains.empty()) count_links(attributes, domains.front());
    // These are the same for whoever is in a group, so one partition has them all.
    for (const auto& partition : partitions([this](int a, int b) { return behind_one_switch(a, b); }, 1))
      name_groups(attributes, "pcieSwitch", partition);
    for (const auto& partition : partitions([this](int a, int b) { return on_one_board(a, b); }, 1))
      name_groups(attributes, "board", partition);
  }

 private:
  const gpu::Device& device(int i) const { return inventory_.devices[static_cast<std::size_t>(i)]; }
  const gpu::Link& link(int a, int b) const {
    return inventory_.links[static_cast<std::size_t>(a)][static_cast<std::size_t>(b)];
  }
  int behind_one_switch(int a, int b) const { return link(a, b).pcie <= gpu::PcieLevel::kSwitch ? 1 : 0; }
  int on_one_board(int a, int b) const {
    const bool same = device(a).board_id && device(a).board_id == device(b).board_id;
    return same || link(a, b).pcie <= gpu::PcieLevel::kSameBoard ? 1 : 0;
  }

  /// Of GPUs that have a name.
  std::vector<Partition> partitions(const Joined& joined, int most) const {
    const auto named = [&](int a, int b) { return device(a).minor && device(b).minor ? joined(a, b) : 0; };
    return joined_groups(static_cast<int>(inventory_.links.size()), named, most);
  }

  /// By the minor numbers of its members, "0-3,8", or the lowest of them where that gets too long.
  std::string group_name(const std::vector<int>& members) const {
    std::vector<int> minors;
    for (const int member : members) minors.push_back(*device(member).minor);
    std::ranges::sort(minors);
    auto name = format_ranges(minors);
    return name.size() <= kLongestValue ? name
                                        : fmt::format("{} and {} more", minors.front(), minors.size() - 1);
  }

  void name_groups(std::vector<json>& attributes, const std::string& name, const Partition& partition) const {
    for (std::size_t i = 0; i < partition.size(); ++i)
      if (!partition[i].empty()) set_text(attributes[i], name, group_name(partition[i]));
  }

  void count_links(std::vector<json>& attributes, const Partition& partition) const {
    for (std::size_t i = 0; i < partition.size(); ++i) {
      if (partition[i].empty()) continue;
      int least = std::numeric_limits<int>::max();
      for (const int a : partition[i])
        for (const int b : partition[i])
          if (a != b) least = std::min(least, link(a, b).nvlinks);
      set_number(attributes[i], "nvlinkDomainSize", static_cast<int>(partition[i].size()));
      set_number(attributes[i], "nvlinkDomainLinks", least);
    }
  }

  const gpu::Inventory& inventory_;
};

}  // namespace

std::optional<std::string> device_name(const gpu::Device& device) {
  if (!device.minor) return std::nullopt;
  return fmt::format("gpu-{}", *device.minor);
}

std::optional<std::string> semantic_version(const std::string& version) {
  std::array<std::uint64_t, 3> parts{};
  std::size_t part = 0;
  std::size_t digits = 0;
  for (const char c : version) {
    if (c == '.') {
      if (digits == 0 || ++part == parts.size()) return std::nullopt;
      digits = 0;
    } else if (c < '0' || c > '9' || ++digits > 9) {
      return std::nullopt;
    } else {
      parts.at(part) = parts.at(part) * 10 + static_cast<std::uint64_t>(c - '0');
    }
  }
  if (digits == 0) return std::nullopt;
  return fmt::format("{}.{}.{}", parts[0], parts[1], parts[2]);
}

std::vector<json> attributes_of(const View& view) {
  std::vector<json> attributes;
  for (const auto& device : view.inventory.devices) attributes.push_back(facts_of(view, device));
  if (view.inventory.links.size() == attributes.size()) Groups(view.inventory).add_to(attributes);
  return attributes;
}

}  // namespace drover::kube::dra
