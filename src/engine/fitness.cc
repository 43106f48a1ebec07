#include "engine/fitness.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <map>

namespace drover::engine {
namespace {

using Devices = std::vector<gpu::Device>;

/// Null: it was not there. Nearly always it is where it was.
const gpu::Device* same_gpu(const Devices& devices, const std::string& uuid, std::size_t likely) {
  if (likely < devices.size() && devices[likely].uuid == uuid) return &devices[likely];
  const auto found = std::ranges::find(devices, uuid, &gpu::Device::uuid);
  return found == devices.end() ? nullptr : &*found;
}

bool have_one_in_common(const Devices& before, const Devices& now) {
  for (std::size_t i = 0; i < now.size(); ++i)
    if (same_gpu(before, now[i].uuid, i) != nullptr) return true;
  return false;
}

}  // namespace

std::vector<FitnessNews> fitness_news(const Devices& before, const Devices& now, std::string_view node) {
  std::vector<FitnessNews> news;
  for (std::size_t i = 0; i < now.size(); ++i) {
    const auto& device = now[i];
    const auto* known = same_gpu(before, device.uuid, i);
    if (known != nullptr && known->unhealthy == device.unhealthy) continue;
    const bool is_fit = device.unhealthy.empty();
    news.push_back({is_fit, fmt::format("GPU {}{}{} ({}){}{}", device.index, node.empty() ? "" : " of node ",
                                        node, device.uuid, is_fit ? " is fit" : ": ", device.unhealthy)});
  }
  return news;
}

std::vector<FitnessNews> fitness_news(const std::vector<placement::Node>& before,
                                      const std::vector<placement::Node>& now) {
  std::map<std::string_view, const Devices*> known;
  for (const auto& node : before) known.emplace(node.name, &node.inventory.devices);
  std::vector<FitnessNews> news;
  for (const auto& node : now) {
    const auto& devices = node.inventory.devices;
    const auto found = known.find(node.name);
    if (found == known.end() || !have_one_in_common(*found->second, devices)) continue;
    std::ranges::move(fitness_news(*found->second, devices, node.name), std::back_inserter(news));
  }
  return news;
}

}  // namespace drover::engine
