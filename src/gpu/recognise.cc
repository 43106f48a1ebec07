#include "gpu/recognise.h"

#include <algorithm>
#include <cstdint>

namespace drover::gpu {
namespace {

constexpr std::size_t kNowhere = SIZE_MAX;

std::size_t find_uuid(const std::vector<Device>& devices, const std::string& uuid) {
  const auto found = std::ranges::find(devices, uuid, &Device::uuid);
  return found == devices.end() ? kNowhere : static_cast<std::size_t>(found - devices.begin());
}

/// Where in `before` the GPU is that `now.devices[position]` must be.
std::size_t place_in(const Inventory& before, const Inventory& now, std::size_t position) {
  const auto& device = now.devices[position];
  if (tells_uuid(device)) return find_uuid(before.devices, device.uuid);
  auto place = now.devices.size() == before.devices.size() ? position : kNowhere;
  if (device.pci) {
    const auto found = std::ranges::find(before.devices, device.pci, &Device::pci);
    place =
        found == before.devices.end() ? kNowhere : static_cast<std::size_t>(found - before.devices.begin());
  }
  // One that tells its name elsewhere is not the one that is silent here.
  if (place != kNowhere && find_uuid(now.devices, before.devices[place].uuid) != kNowhere) return kNowhere;
  return place;
}

}  // namespace

bool tells_uuid(const Device& device) {
  return !device.uuid.starts_with("PCI-") && !device.uuid.starts_with("INDEX-");
}

Inventory recognise(Inventory now, const Inventory& before) {
  const auto count = now.devices.size();
  std::vector<std::size_t> places(count);
  std::vector<bool> silent(count);
  for (std::size_t i = 0; i < count; ++i) {
    places[i] = place_in(before, now, i);
    silent[i] = places[i] != kNowhere && !tells_uuid(now.devices[i]);
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (!silent[i]) continue;
    auto known = before.devices[places[i]];
    known.index = now.devices[i].index;
    known.unhealthy = std::move(now.devices[i].unhealthy);
    known.problems = std::move(now.devices[i].problems);
    now.devices[i] = std::move(known);
    for (std::size_t j = 0; j < count; ++j)
      if (places[j] != kNowhere) now.links[i][j] = now.links[j][i] = before.links[places[i]][places[j]];
  }
  return now;
}

}  // namespace drover::gpu
