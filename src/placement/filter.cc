#include "placement/filter.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <vector>

#include "base/text.h"

namespace drover::placement {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  bool inside = false;
  for (const char raw : text) {
    const char c = lower(raw);
    const bool part = is_digit(c) || (c >= 'a' && c <= 'z');
    if (part && !inside) words.emplace_back();
    if (part) words.back() += c;
    inside = part;
  }
  return words;
}

std::vector<long> numbers_of(std::string_view text) {
  std::vector<long> numbers;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (!is_digit(text[at])) continue;
    long number = 0;
    const auto end = std::from_chars(text.data() + at, text.data() + text.size(), number).ptr;
    numbers.push_back(number);
    at = static_cast<std::size_t>(end - text.data());
  }
  return numbers;
}

bool satisfies(const NodeKind& kind, const DeviceKind& device, const DeviceFilter& filter, const Share& share,
               Dimension dimension) {
  switch (dimension) {
    case Dimension::kModel:
      return filter.models.empty() || std::ranges::any_of(filter.models, [&](const auto& model) {
               return model_matches(model, device.model);
             });
    case Dimension::kGpuMemory:
      return device.memory_bytes >= share.memory_bytes &&
             sold_memory(device.memory_bytes) >= filter.min_memory_bytes;
    case Dimension::kComputeCapability:
      return !filter.min_compute_capability ||
             (device.compute_capability && *device.compute_capability >= *filter.min_compute_capability);
    case Dimension::kEcc:
      return !filter.ecc || device.ecc.value_or(false) == *filter.ecc;
    case Dimension::kDriver:
      return filter.min_driver.empty() || driver_at_least(kind.driver, filter.min_driver);
    default:
      return true;
  }
}

}  // namespace

std::uint64_t sold_memory(std::uint64_t bytes) {
  // GiB, of NVIDIA's cards and of their MIG instances
  constexpr std::array<std::uint64_t, 29> kSizes = {1,  2,  3,   4,   5,   6,   7,   8,   9,  10,
                                                    11, 12, 16,  20,  24,  32,  40,  48,  64, 80,
                                                    94, 96, 128, 141, 144, 180, 192, 256, 288};
  constexpr std::uint64_t kTenths = 10;
  for (const auto size : kSizes) {
    const auto sold = size << 30;
    if (bytes <= sold) return bytes >= sold / kTenths * (kTenths - 1) ? sold : bytes;
  }
  return bytes;
}

bool model_matches(std::string_view wanted, std::string_view model) {
  const auto words = words_of(wanted);
  const auto all = words_of(model);
  return !words.empty() && !std::ranges::search(all, words).empty();
}

bool driver_at_least(std::string_view driver, std::string_view minimum) {
  auto has = numbers_of(driver);
  auto wants = numbers_of(minimum);
  if (has.empty()) return false;
  const auto length = std::max(has.size(), wants.size());
  has.resize(length);
  wants.resize(length);
  return has >= wants;
}

DeviceMask allowed_devices(const NodeKind& kind, const DeviceFilter& filter, const Share& share,
                           Dimension up_to) {
  auto allowed = kind.all;
  for (const auto dimension : kFilterDimensions) {
    if (dimension > up_to) break;
    for (int i = 0; i < kind.count(); ++i)
      if (!satisfies(kind, kind.devices[static_cast<std::size_t>(i)], filter, share, dimension))
        allowed &= ~device_bit(i);
  }
  return allowed;
}

std::vector<DeviceMask> devices_by_capabilities(const NodeKind& kind, const CapabilitySets& capabilities) {
  std::vector<DeviceMask> masks;
  for (const auto& set : capabilities.sets) {
    DeviceMask devices = 0;
    for (int i = 0; i < kind.count(); ++i) {
      const auto& own = kind.devices[static_cast<std::size_t>(i)].compute_capability;
      if (std::ranges::find(set, own.value_or(gpu::ComputeCapability())) != set.end())
        devices |= device_bit(i);
    }
    masks.push_back(devices);
  }
  return masks;
}

}  // namespace drover::placement
