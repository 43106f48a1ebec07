#include "gpu/kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "base/files.h"
#include "base/text.h"

namespace drover::gpu {
namespace {

constexpr std::string_view kNvidiaVendor = "0x10de";
constexpr std::string_view kDisplayClass = "0x03";
constexpr int kMostCpus = 65536;

std::optional<int> whole_number(std::string_view text) {
  int value = 0;
  const auto* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

std::string device_path(const std::string& root, const PciAddress& address) {
  return fmt::format("{}/sys/bus/pci/devices/{}", root, to_string(address));
}

}  // namespace

Result<std::vector<int>> parse_cpu_list(std::string_view text) {
  const auto whole = text = trimmed(text);
  std::vector<int> cpus;
  while (!text.empty()) {
    const auto comma = text.find(',');
    const auto part = text.substr(0, comma);
    const auto dash = part.find('-');
    const auto first = whole_number(part.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : whole_number(part.substr(dash + 1));
    if (!first || !last || *first < 0 || *last < *first || *last >= kMostCpus)
      return fail(ErrorKind::kInvalid, fmt::format("'{}' is not a list of CPUs", whole),
                  "write it like 0-3,8");
    for (int cpu = *first; cpu <= *last; ++cpu) cpus.push_back(cpu);
    text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
  }
  std::sort(cpus.begin(), cpus.end());
  cpus.erase(std::unique(cpus.begin(), cpus.end()), cpus.end());
  return cpus;
}

std::vector<PciAddress> Kernel::nvidia_gpus() const {
  const auto devices = Directory::open(root_ + "/sys/bus/pci/devices");
  if (!devices) return {};
  std::vector<PciAddress> found;
  for (const auto& name : devices->list().value_or(std::vector<std::string>{})) {
    const auto address = parse_pci_address(name);
    if (address && attribute(*address, "vendor") == kNvidiaVendor &&
        attribute(*address, "class").value_or("").starts_with(kDisplayClass))
      found.push_back(*address);
  }
  return found;
}

std::optional<int> Kernel::minor(const PciAddress& address) const {
  const auto text =
      read_file(fmt::format("{}/proc/driver/nvidia/gpus/{}/information", root_, to_string(address)));
  constexpr std::string_view kField = "Device Minor:";
  const auto start = text ? text->find(kField) : std::string::npos;
  if (start == std::string::npos) return std::nullopt;
  const auto line = std::string_view(*text).substr(start + kField.size());
  return whole_number(trimmed(line.substr(0, line.find('\n'))));
}

std::optional<int> Kernel::numa_node(const PciAddress& address) const {
  const auto node = whole_number(attribute(address, "numa_node").value_or(""));
  return node && *node >= 0 ? node : std::nullopt;
}

std::vector<int> Kernel::cpus(const PciAddress& address) const {
  return parse_cpu_list(attribute(address, "local_cpulist").value_or("")).value_or(std::vector<int>{});
}

PcieLevel Kernel::level(const PciAddress& a, const PciAddress& b) const {
  if (a == b) return PcieLevel::kSameDevice;
  const auto left = ancestry(a);
  const auto right = ancestry(b);
  if (left.empty() || right.empty()) return PcieLevel::kUnknown;
  const auto [from_left, from_right] = std::mismatch(left.begin(), left.end(), right.begin(), right.end());
  const auto shared = from_left - left.begin();
  if (shared == 1) return PcieLevel::kHostBridge;
  if (shared > 1) {
    // One switch shows as an upstream port, which both share, and a downstream port each.
    const bool one_switch = left.end() - from_left <= 2 && right.end() - from_right <= 2;
    return one_switch ? PcieLevel::kSwitch : PcieLevel::kSwitches;
  }
  const auto left_node = numa_node(a);
  const auto right_node = numa_node(b);
  if (!left_node || !right_node) return PcieLevel::kUnknown;
  return left_node == right_node ? PcieLevel::kSameNuma : PcieLevel::kAcross;
}

std::optional<std::string> Kernel::pcie_root(const PciAddress& address) const {
  const auto place = ancestry(address);
  return place.empty() ? std::nullopt : std::optional(place.front());
}

std::optional<std::string> Kernel::attribute(const PciAddress& address, const std::string& name) const {
  const auto text = read_file(device_path(root_, address) + "/" + name);
  if (!text) return std::nullopt;
  return std::string(trimmed(*text));
}

/// From the host bridge ("pci0000:80") down to the function itself.
std::vector<std::string> Kernel::ancestry(const PciAddress& address) const {
  std::error_code error;
  const auto place = std::filesystem::canonical(device_path(root_, address), error);
  if (error) return {};
  std::vector<std::string> parts;
  for (const auto& part : place) {
    const auto name = part.string();
    const bool host_bridge = name.starts_with("pci") && name.find(':') != std::string::npos;
    if (host_bridge || (!parts.empty() && parse_pci_address(name))) parts.push_back(name);
  }
  return parts;
}

}  // namespace drover::gpu
