#include "placement/testing/reference.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>

#include "placement/filter.h"

namespace drover::placement::testing {
namespace {

bool is_what(const Node& node, const gpu::Device& device, const DeviceFilter& filter) {
  const bool model = filter.models.empty() || std::ranges::any_of(filter.models, [&](const auto& wanted) {
                       return model_matches(wanted, device.model);
                     });
  return model && sold_memory(device.memory_bytes.value_or(0)) >= filter.min_memory_bytes &&
         (!filter.min_compute_capability ||
          (device.compute_capability && *device.compute_capability >= *filter.min_compute_capability)) &&
         (!filter.ecc || device.ecc.value_or(false) == *filter.ecc) &&
         (filter.min_driver.empty() || driver_at_least(node.inventory.driver_version, filter.min_driver));
}

/// What a share takes of a device, by the words of resources.h; nothing when the device cannot have it.
std::optional<Grant> grant_of(const Share& share, const gpu::Device& device) {
  const auto memory = device.memory_bytes.value_or(0);
  if (share.memory_bytes == 0)
    return Grant{device.uuid, share.milli, memory * static_cast<std::uint64_t>(share.milli) / 1000};
  if (share.memory_bytes > memory) return std::nullopt;
  return Grant{device.uuid, static_cast<int>(share.memory_bytes * 1000 / memory), share.memory_bytes};
}

/// Whether devices can be handed out to the claims, one after the other.
bool assignable(const Node& node, const Request& request, std::vector<std::size_t> set, std::size_t claim) {
  if (claim == request.gpus.size()) return set.empty();
  const auto& wanted = request.gpus[claim];
  std::vector<bool> picked(set.size());
  std::fill(picked.begin(), picked.begin() + std::min<int>(wanted.count, static_cast<int>(set.size())), true);
  if (static_cast<int>(set.size()) < wanted.count) return false;
  do {
    std::vector<std::size_t> rest;
    bool good = true;
    for (std::size_t i = 0; i < set.size(); ++i) {
      if (!picked[i])
        rest.push_back(set[i]);
      else
        good = good && is_what(node, node.inventory.devices[set[i]], wanted.filter);
    }
    if (good && assignable(node, request, rest, claim + 1)) return true;
  } while (std::prev_permutation(picked.begin(), picked.end()));
  return false;
}

bool pair_will_do(const gpu::Link& link, const Interconnect& minimum) {
  if (minimum.min_nvlinks == 0 && minimum.max_pcie == gpu::PcieLevel::kUnknown) return true;
  if (link.nvlinks >= 1 && link.nvlinks >= minimum.min_nvlinks) return true;
  return minimum.max_pcie != gpu::PcieLevel::kUnknown && link.pcie <= minimum.max_pcie;
}

int numa_mask(const Node& node, const std::vector<std::size_t>& set) {
  int mask = 0;
  for (const auto i : set)
    if (const auto& numa = node.inventory.devices[i].numa_node) mask |= 1 << *numa;
  return mask;
}

bool has_nic(const Node& node, const gpu::Device& device) {
  return device.numa_node &&
         std::ranges::any_of(node.nics, [&](const auto& nic) { return nic.numa_node == device.numa_node; });
}

/// CPUs of a NUMA node without GPUs are nobody's neighbours: what is pinned there floats, as far as GPUs
/// matter.
bool has_gpus(const Node& node, std::size_t numa) {
  return std::ranges::any_of(node.inventory.devices,
                             [&](const auto& device) { return device.numa_node == static_cast<int>(numa); });
}

bool may_run_on(const Node& node, const Request& request) {
  if (request.eligibility && request.eligibility->refused.contains(node.name)) return false;
  return std::ranges::all_of(request.attributes, [&](const auto& wanted) {
    const auto found = node.attributes.find(wanted.name);
    return found != node.attributes.end() && std::ranges::any_of(found->second, [&](const auto& value) {
             return std::ranges::count(wanted.any_of, value) > 0;
           });
  });
}

bool any_set(std::size_t devices, std::size_t count,
             const std::function<bool(const std::vector<std::size_t>&)>& test) {
  if (count > devices) return false;
  std::vector<bool> picked(devices);
  std::fill(picked.begin(), picked.begin() + static_cast<std::ptrdiff_t>(count), true);
  do {
    std::vector<std::size_t> set;
    for (std::size_t i = 0; i < devices; ++i)
      if (picked[i]) set.push_back(i);
    if (test(set)) return true;
  } while (std::prev_permutation(picked.begin(), picked.end()));
  return false;
}

bool capable(const Request& request, const Node& node, const std::vector<std::size_t>& devices) {
  const auto& sets = request.capabilities.sets;
  return sets.empty() || devices.empty() || std::ranges::any_of(sets, [&](const auto& set) {
           return std::ranges::all_of(devices, [&](std::size_t i) {
             const auto& own = node.inventory.devices[i].compute_capability;
             return std::ranges::count(set, own.value_or(gpu::ComputeCapability())) > 0;
           });
         });
}

}  // namespace

const Reference::Taken* Reference::of_group(const std::string& group) const {
  if (group.empty()) return nullptr;
  for (const auto& [id, other] : taken)
    if (other.request.group == group) return &other;
  return nullptr;
}

Reference::Use Reference::use_of(const std::string& uuid) const {
  Use use;
  std::set<std::string> groups;
  for (const auto& [id, other] : taken) {
    if (!other.request.group.empty() && !groups.insert(other.request.group).second) continue;
    for (const auto& grant : other.decision.gpus)
      if (grant.uuid == uuid) use = {use.milli + grant.milli, use.memory + grant.memory_bytes};
  }
  return use;
}

Reference::Host Reference::host_of(const Node& node) const {
  Host host;
  for (const auto& [id, other] : taken) {
    if (other.decision.node != node.name) continue;
    host.milli_cpus += other.request.milli_cpus;
    host.memory += other.request.memory_bytes;
    int mask = 0;
    for (std::size_t i = 0; i < node.numa.size(); ++i)
      if (has_gpus(node, i) && std::ranges::any_of(node.numa[i].cpus, [&](int cpu) {
            return std::ranges::count(other.decision.cpus, cpu) > 0;
          }))
        mask |= 1 << i;
    if (mask > 0) host.pinned[mask - 1] += other.request.milli_cpus;
  }
  return host;
}

bool Reference::pinnable(const Node& node, int mask, std::int64_t milli_cpus, bool empty) const {
  if (mask == 0) return false;
  auto host = empty ? Host{} : host_of(node);
  host.pinned[mask - 1] += milli_cpus;
  std::int64_t exist[2] = {};
  for (std::size_t i = 0; i < node.numa.size(); ++i)
    if (has_gpus(node, i)) exist[i] = 1000 * static_cast<std::int64_t>(node.numa[i].cpus.size());
  std::int64_t of_mask = 0;
  for (int i = 0; i < 2; ++i)
    if ((mask >> i & 1) != 0) of_mask += exist[i];
  // Sets of NUMA nodes that what is pinned here can crowd out: those that contain its own.
  const auto all = host.pinned[0] + host.pinned[1] + host.pinned[2];
  return of_mask > 0 && (mask != 1 || host.pinned[0] <= exist[0]) &&
         (mask != 2 || host.pinned[1] <= exist[1]) &&
         (node.numa.size() < 2 || !has_gpus(node, 0) || !has_gpus(node, 1) || all <= exist[0] + exist[1]);
}

bool Reference::set_will_do(const Node& node, const Request& request, const std::vector<std::size_t>& set,
                            bool empty) const {
  const auto& devices = node.inventory.devices;
  std::set<std::string> models;
  for (const auto i : set) {
    const auto grant = grant_of(request.share, devices[i]);
    if (!grant || (!empty && !devices[i].unhealthy.empty())) return false;
    const auto use = empty ? Use{} : use_of(devices[i].uuid);
    if (use.milli + grant->milli > 1000 ||
        use.memory + grant->memory_bytes > devices[i].memory_bytes.value_or(0))
      return false;
    if (request.share.whole() && (use.milli > 0 || use.memory > 0)) return false;
    if (request.different_models && !models.insert(devices[i].model).second) return false;
    if (request.nic == Preference::kRequire && !has_nic(node, devices[i])) return false;
    for (const auto j : set)
      if (i < j && !pair_will_do(node.inventory.links[i][j], request.interconnect)) return false;
  }
  if (!capable(request, node, set)) return false;
  if (request.cpu_affinity == Preference::kRequire && !set.empty() &&
      !pinnable(node, numa_mask(node, set), request.milli_cpus, empty))
    return false;
  return assignable(node, request, set, 0);
}

bool Reference::fits(const Node& node, const Request& request) const {
  const auto host = host_of(node);
  if (!node.cordoned.empty() || host.milli_cpus + request.milli_cpus > node.milli_cpus ||
      host.memory + request.memory_bytes > node.memory_bytes)
    return false;
  if (request.eligibility && request.eligibility->refused.contains(node.name)) return false;
  if (const auto* other = of_group(request.group)) {
    if (other->decision.node != node.name || other->request.gpus != request.gpus ||
        other->request.share != request.share)
      return false;
    std::vector<std::size_t> set;
    for (const auto& grant : other->decision.gpus)
      for (std::size_t i = 0; i < node.inventory.devices.size(); ++i)
        if (node.inventory.devices[i].uuid == grant.uuid && node.inventory.devices[i].unhealthy.empty())
          set.push_back(i);
    return set.size() == other->decision.gpus.size() && capable(request, node, set) &&
           (request.cpu_affinity != Preference::kRequire ||
            pinnable(node, numa_mask(node, set), request.milli_cpus, false));
  }
  return may_run_on(node, request) &&
         any_set(node.inventory.devices.size(), static_cast<std::size_t>(request.gpu_count()),
                 [&](const auto& set) { return set_will_do(node, request, set, false); });
}

bool Reference::could_fit(const Node& node, const Request& request) const {
  return request.milli_cpus <= node.milli_cpus && request.memory_bytes <= node.memory_bytes &&
         may_run_on(node, request) &&
         any_set(node.inventory.devices.size(), static_cast<std::size_t>(request.gpu_count()),
                 [&](const auto& set) { return set_will_do(node, request, set, true); });
}

std::string Reference::wrong_with(const Request& request, const Decision& decision) const {
  const auto found = nodes.find(decision.node);
  if (found == nodes.end()) return "no such node";
  const auto& node = found->second;
  if (!fits(node, request)) return "it does not fit there";
  if (const auto* other = of_group(request.group))
    return other->decision.gpus == decision.gpus ? "" : "its group has other GPUs";
  std::vector<std::size_t> set;
  for (const auto& grant : decision.gpus)
    for (std::size_t i = 0; i < node.inventory.devices.size(); ++i)
      if (node.inventory.devices[i].uuid == grant.uuid) {
        set.push_back(i);
        if (grant_of(request.share, node.inventory.devices[i]) != grant)
          return "another share than was asked for";
      }
  if (set.size() != decision.gpus.size()) return "a GPU that is not there";
  if (!std::ranges::is_sorted(set)) return "not in the order of indices";
  if (!set_will_do(node, request, set, false)) return "these GPUs will not do";
  return near_cpus(node, request, set) == decision.cpus ? "" : "other CPUs than those near the GPUs";
}

std::vector<int> Reference::near_cpus(const Node& node, const Request& request,
                                      const std::vector<std::size_t>& set) const {
  const auto mask = numa_mask(node, set);
  std::vector<int> cpus;
  if (request.cpu_affinity != Preference::kNone && pinnable(node, mask, request.milli_cpus, false))
    for (std::size_t i = 0; i < node.numa.size(); ++i)
      if ((mask >> i & 1) != 0) cpus.insert(cpus.end(), node.numa[i].cpus.begin(), node.numa[i].cpus.end());
  std::ranges::sort(cpus);
  return cpus;
}

std::vector<Decision> Reference::decisions(const Node& node, const Request& request) const {
  std::vector<Decision> all;
  any_set(node.inventory.devices.size(), static_cast<std::size_t>(request.gpu_count()), [&](const auto& set) {
    Decision decision{.node = node.name, .cpus = near_cpus(node, request, set)};
    for (const auto i : set)
      decision.gpus.push_back(grant_of(request.share, node.inventory.devices[i]).value_or(Grant{}));
    if (!wrong_with(request, decision).empty()) return false;
    all.push_back(decision);
    if (request.cpu_affinity != Preference::kPrefer || decision.cpus.empty()) return false;
    decision.cpus.clear();
    all.push_back(std::move(decision));
    return false;
  });
  return all;
}

std::string Reference::given_twice() const {
  for (const auto& [name, node] : nodes) {
    for (const auto& device : node.inventory.devices) {
      const auto use = use_of(device.uuid);
      if (use.milli > 1000 || use.memory > device.memory_bytes.value_or(0)) return device.uuid;
    }
    const auto host = host_of(node);
    if (host.milli_cpus > node.milli_cpus || host.memory > node.memory_bytes) return name;
  }
  return "";
}

}  // namespace drover::placement::testing
