#include "gpu/device.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace drover::gpu {
namespace {

/// Reads exactly `least`..`most` hexadecimal digits from the front of `text`.
bool take_hex(std::string_view& text, std::size_t least, std::size_t most, std::uint32_t& value) {
  const auto* end = text.data() + std::min(most, text.size());
  const auto [stop, error] = std::from_chars(text.data(), end, value, 16);
  const auto digits = static_cast<std::size_t>(stop - text.data());
  if (error != std::errc() || digits < least) return false;
  text.remove_prefix(digits);
  return true;
}

bool take(std::string_view& text, char expected) {
  if (text.empty() || text.front() != expected) return false;
  text.remove_prefix(1);
  return true;
}

}  // namespace

std::string to_string(const PciAddress& address) {
  return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", address.domain, address.bus, address.device,
                     address.function);
}

Result<PciAddress> parse_pci_address(const std::string& text) {
  PciAddress address;
  std::string_view rest = text;
  const bool valid =
      take_hex(rest, 4, 8, address.domain) && take(rest, ':') && take_hex(rest, 2, 2, address.bus) &&
      take(rest, ':') && take_hex(rest, 2, 2, address.device) && take(rest, '.') &&
      take_hex(rest, 1, 1, address.function) && rest.empty() && address.device < 32 && address.function < 8;
  if (!valid)
    return fail(ErrorKind::kInvalid, fmt::format("'{}' is not a PCI address", text),
                "write it like 0000:82:00.0");
  return address;
}

std::string_view to_string(PcieLevel level) {
  switch (level) {
    case PcieLevel::kSameDevice:
      return "X";
    case PcieLevel::kSameBoard:
    case PcieLevel::kSwitch:
      return "PIX";
    case PcieLevel::kSwitches:
      return "PXB";
    case PcieLevel::kHostBridge:
      return "PHB";
    case PcieLevel::kSameNuma:
      return "NODE";
    case PcieLevel::kAcross:
      return "SYS";
    case PcieLevel::kUnknown:
      break;
  }
  return "?";
}

}  // namespace drover::gpu
