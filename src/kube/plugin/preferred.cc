#include "kube/plugin/preferred.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "kube/plugin/resources.h"
#include "placement/device_choice.h"
#include "placement/device_mask.h"

namespace drover::kube {
namespace {

using placement::DeviceMask;

/// The first `size` of two lists, each once.
class FirstIds {
 public:
  explicit FirstIds(int size) : size_(static_cast<std::size_t>(std::max(size, 0))) {}

  void add(const std::string& id) {
    if (!full() && taken_.insert(id).second) ids_.push_back(id);
  }
  void add_all(const std::vector<std::string>& ids) {
    for (const auto& id : ids) add(id);
  }
  bool full() const { return ids_.size() == size_; }
  bool has(const std::string& id) const { return taken_.contains(id); }
  std::vector<std::string> take() && { return std::move(ids_); }

 private:
  std::size_t size_;
  std::set<std::string> taken_;
  std::vector<std::string> ids_;
};

std::size_t count_of(const gpu::Inventory& inventory) {
  return std::min<std::size_t>(inventory.devices.size(), placement::kMaxDevices);
}

/// The last GPU first: of sets that are as good as each other the first one is chosen, and the scheduler
/// gives claims the first GPUs. So the two seldom choose the same one.
placement::Wiring wiring_of(const gpu::Inventory& inventory) {
  const auto count = count_of(inventory);
  auto links = inventory.links;
  links.resize(count);
  for (auto& row : links) {
    row.resize(count);
    std::ranges::reverse(row);
  }
  std::ranges::reverse(links);
  std::vector<std::optional<int>> numa;
  for (std::size_t i = count; i > 0; --i) numa.push_back(inventory.devices[i - 1].numa_node);
  return {links, numa};
}

}  // namespace

PreferredAllocation::PreferredAllocation(const gpu::Inventory& inventory) : wiring_(wiring_of(inventory)) {
  for (std::size_t i = count_of(inventory); i > 0; --i) uuids_.push_back(inventory.devices[i - 1].uuid);
}

DeviceMask PreferredAllocation::known(const std::vector<std::string>& ids) const {
  DeviceMask mask = 0;
  for (const auto& id : ids) {
    const auto found = std::ranges::find(uuids_, id);
    if (found != uuids_.end()) mask |= placement::bit(static_cast<int>(found - uuids_.begin()));
  }
  return mask;
}

std::vector<std::string> PreferredAllocation::of_gpus(const std::vector<std::string>& available,
                                                      const std::vector<std::string>& must_include,
                                                      int size) const {
  FirstIds selection(size);
  selection.add_all(must_include);
  const auto must = known(must_include);
  const auto others = known(available) & ~must;
  const int wanted = std::min(size - static_cast<int>(must_include.size()), std::popcount(others));
  if (wanted > 0) {
    placement::DeviceCriteria criteria;
    criteria.claims = {{wanted, others}};
    if (must != 0) criteria.claims.push_back({std::popcount(must), must});
    criteria.free = must | others;
    if (const auto best = placement::choose(wiring_, criteria))
      placement::for_each_device(*best & others, [&](int i) { selection.add(uuids_[placement::at(i)]); });
  }
  selection.add_all(available);  // of what nobody knows here, only when it takes that many
  return std::move(selection).take();
}

std::vector<std::string> PreferredAllocation::of_replicas(const std::vector<std::string>& available,
                                                          const std::vector<std::string>& must_include,
                                                          int size, SharedPolicy policy) {
  FirstIds selection(size);
  selection.add_all(must_include);
  std::map<std::string, std::vector<std::string>, std::less<>> free;  // by GPU
  for (const auto& id : available)
    if (!selection.has(id)) free[std::string(uuid_in(id))].push_back(id);
  while (!selection.full() && !free.empty()) {
    const auto fewer_left = [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); };
    const auto next = policy == SharedPolicy::kPacked ? std::ranges::min_element(free, fewer_left)
                                                      : std::ranges::max_element(free, fewer_left);
    selection.add(next->second.front());
    next->second.erase(next->second.begin());
    if (next->second.empty()) free.erase(next);
  }
  return std::move(selection).take();
}

}  // namespace drover::kube
