#include "kube/scheduler/claims/device_pools.h"

#include <fmt/format.h>

#include <algorithm>

namespace drover::kube::scheduler {
namespace {

constexpr std::string_view kOwnResource = "deviceclass.resource.kubernetes.io/";

template <typename Map, typename Key>
auto* found_in(Map& map, const Key& key) {
  const auto found = map.find(key);
  return found == map.end() ? nullptr : &found->second;
}

bool is_for(const ResourceSlice& slice, const Node& node) {
  if (!slice.nodes_by_device) return chooses(slice.nodes, node);
  return std::ranges::any_of(slice.devices,
                             [&](const Device& device) { return chooses(*device.nodes, node); });
}

/// The newest generation among slices.
template <typename Slices>
std::int64_t newest(const Slices& slices) {
  std::int64_t generation = 0;
  for (const auto* slice : slices) generation = std::max(generation, slice->generation);
  return generation;
}

using SliceList = std::vector<const ResourceSlice*>;

SliceList of_generation(const SliceList& slices, std::int64_t generation) {
  SliceList kept;
  std::ranges::copy_if(slices, std::back_inserter(kept),
                       [&](const auto* slice) { return slice->generation == generation; });
  return kept;
}

/// Why counters and names of devices do not go together; "" when they do.
std::string wrong_names(const SliceList& slices) {
  std::set<std::string_view> names;
  for (const auto* slice : slices)
    for (const auto& device : slice->devices)
      if (!names.insert(device.name).second)
        return fmt::format("two of its devices are named '{}'", device.name);
  return "";
}

std::string wrong_consumption(const NodePool& pool, const SliceList& slices) {
  for (const auto* slice : slices)
    for (const auto& device : slice->devices) {
      if (!device.consumes) continue;
      for (const auto& [set, counters] : *device.consumes) {
        const auto* const known = found_in(pool.counters, set);
        if (known == nullptr)
          return fmt::format("its device '{}' consumes counters of the set '{}', which it lacks", device.name,
                             set);
        for (const auto& [name, value] : counters)
          if (!known->contains(name))
            return fmt::format("its device '{}' consumes the counter '{}', which its set '{}' lacks",
                               device.name, name, set);
      }
    }
  return "";
}

/// Takes the counters out of slices, and checks them.
void validate(NodePool& pool, const SliceList& with_counters) {
  const auto refuse = [&](std::string why) {
    if (pool.invalid.empty()) pool.invalid = std::move(why);
  };
  for (const auto* slice : with_counters)
    for (const auto& [name, counters] : slice->counters)
      if (!pool.counters.emplace(name, counters).second)
        refuse(fmt::format("two of its sets of counters are named '{}'", name));
  refuse(wrong_names(pool.slices));
  refuse(wrong_consumption(pool, pool.slices));
  refuse(wrong_consumption(pool, pool.elsewhere));
}

}  // namespace

void DevicePools::share(Device& device) {
  auto kind = *device.kind;
  for (auto& attribute : kind.attributes) attribute = attributes_.share(std::move(attribute));
  for (auto& capacity : kind.capacities) capacity = capacities_.share(std::move(capacity));
  device.kind = kinds_.share(std::make_shared<const DeviceKind>(std::move(kind)));
  if (device.taints) device.taints = taints_.share(std::move(device.taints));
  if (device.consumes) device.consumes = consumptions_.share(std::move(device.consumes));
  if (device.nodes) device.nodes = choices_.share(std::move(device.nodes));
}

void DevicePools::put_slice(ResourceSlice slice) {
  remove_slice(slice.name);
  for (auto& device : slice.devices) share(device);
  slice.devices.shrink_to_fit();
  const PoolKey key{slice.driver, slice.pool};
  if (slice.nodes.node_name.empty())
    ++pools_of_many_[key];
  else
    pools_by_node_[slice.nodes.node_name].insert(key);
  pool_of_slice_.emplace(slice.name, key);
  auto name = slice.name;
  pools_[key].slices.emplace(std::move(name), std::make_shared<const ResourceSlice>(std::move(slice)));
}

void DevicePools::remove_slice(std::string_view name) {
  const auto known = pool_of_slice_.find(name);
  if (known == pool_of_slice_.end()) return;
  const auto pool = pools_.find(known->second);
  const auto slice = pool->second.slices.find(name);
  const auto node_name = slice->second->nodes.node_name;
  pool->second.slices.erase(slice);
  if (node_name.empty()) {
    const auto many = pools_of_many_.find(pool->first);
    if (--many->second == 0) pools_of_many_.erase(many);
  } else if (std::ranges::none_of(pool->second.slices, [&](const auto& other) {
               return other.second->nodes.node_name == node_name;
             })) {
    const auto of_node = pools_by_node_.find(node_name);
    of_node->second.erase(pool->first);
    if (of_node->second.empty()) pools_by_node_.erase(of_node);
  }
  pool_of_slice_.erase(known);
  drop_if_empty(pool);
}

void DevicePools::drop_if_empty(Pools::iterator pool) {
  if (pool->second.slices.empty() && pool->second.uses.empty()) pools_.erase(pool);
}

void DevicePools::put_claim(ResourceClaim claim) {
  remove_claim(claim.uid);
  claim.spec = specs_.share(claim.spec ? std::move(claim.spec) : std::make_shared<const ClaimSpec>());
  count(claim, 1);
  claim_uids_.insert_or_assign(Named{claim.name_space, claim.name}, claim.uid);
  auto uid = claim.uid;
  claims_.emplace(std::move(uid), std::make_shared<const ResourceClaim>(std::move(claim)));
}

void DevicePools::remove_claim(std::string_view uid) {
  const auto known = claims_.find(uid);
  if (known == claims_.end()) return;
  const auto claim = std::move(known->second);
  claims_.erase(known);
  // Another one of the same name may have come before this one was seen to go.
  const auto named = claim_uids_.find(Named{claim->name_space, claim->name});
  if (named != claim_uids_.end() && named->second == claim->uid) claim_uids_.erase(named);
  count(*claim, -1);
}

bool DevicePools::is_in_use(const DeviceId& id) const {
  const auto pool = pools_.find({id.driver, id.pool});
  return pool != pools_.end() && pool->second.uses.contains(id.device);
}

void DevicePools::count(const ResourceClaim& claim, int sign) {
  if (!claim.allocation) return;
  for (const auto& device : claim.allocation->devices) {
    if (device.admin) continue;
    const auto pool = pools_.try_emplace({device.id.driver, device.id.pool}).first;
    auto& uses = pool->second.uses;
    auto& use = uses[device.id.device];
    (device.share_id.empty() ? use.whole : use.shares) += sign;
    if (!device.share_id.empty())
      for (const auto& [name, amount] : device.consumed) use.consumed[name] += sign * amount.value;
    if (use.none()) uses.erase(device.id.device);
    drop_if_empty(pool);
  }
}

void DevicePools::put_class(DeviceClass device_class) {
  auto name = device_class.name;
  classes_.insert_or_assign(std::move(name), std::move(device_class));
}

void DevicePools::remove_class(std::string_view name) {
  if (const auto found = classes_.find(name); found != classes_.end()) classes_.erase(found);
}

void DevicePools::put_taint_rule(DeviceTaintRule rule) {
  auto name = rule.name;
  taint_rules_.insert_or_assign(std::move(name), std::move(rule));
}

void DevicePools::remove_taint_rule(std::string_view name) {
  if (const auto found = taint_rules_.find(name); found != taint_rules_.end()) taint_rules_.erase(found);
}

const ResourceClaim* DevicePools::claim(std::string_view uid) const {
  const auto* const found = found_in(claims_, uid);
  return found == nullptr ? nullptr : found->get();
}

const ResourceClaim* DevicePools::claim(std::string_view name_space, std::string_view name) const {
  const auto* const uid = found_in(claim_uids_, Named{name_space, name});
  return uid == nullptr ? nullptr : claim(*uid);
}

const DeviceClass* DevicePools::device_class(std::string_view name) const {
  return found_in(classes_, name);
}

const DeviceClass* DevicePools::class_for_resource(std::string_view resource) const {
  if (version_ < kWithExtendedResources) return nullptr;
  if (resource.starts_with(kOwnResource)) return device_class(resource.substr(kOwnResource.size()));
  const DeviceClass* chosen = nullptr;
  for (const auto& [name, known] : classes_)  // of equally old ones the first by name
    if (known.extended_resource == resource && (chosen == nullptr || known.created > chosen->created))
      chosen = &known;
  return resource.empty() ? nullptr : chosen;
}

Taints DevicePools::taints_of(const ResourceSlice& slice, const Device& device) const {
  auto taints = device.taints ? *device.taints : Taints();
  const auto is = [](const std::optional<std::string>& wanted, const std::string& name) {
    return !wanted || *wanted == name;
  };
  for (const auto& [name, rule] : taint_rules_)
    if (rule.selects && is(rule.driver, slice.driver) && is(rule.pool, slice.pool) &&
        is(rule.device, device.name))
      taints.push_back(rule.taint);
  return taints;
}

Taints DevicePools::taints_of(const DeviceId& id) const {
  const auto pool = pools_.find({id.driver, id.pool});
  if (pool == pools_.end()) return {};
  const ResourceSlice* newest = nullptr;
  const Device* found = nullptr;
  for (const auto& [name, slice] : pool->second.slices) {
    if (newest != nullptr && slice->generation <= newest->generation) continue;
    const auto device = std::ranges::find(slice->devices, id.device, &Device::name);
    if (device == slice->devices.end()) continue;
    newest = slice.get();
    found = &*device;
  }
  return found == nullptr ? Taints() : taints_of(*newest, *found);
}

std::vector<NodePool> DevicePools::pools_of(const Node& node) const {
  std::set<PoolKey> keys;
  if (const auto* const own = found_in(pools_by_node_, node.name)) keys = *own;
  for (const auto& [key, slices] : pools_of_many_) keys.insert(key);
  std::vector<NodePool> pools;
  std::vector<NodePool> last;
  for (const auto& key : keys) {
    auto pool = seen_from(node, *pools_.find(key));
    if (!pool) continue;
    const auto waits = std::ranges::any_of(pool->slices, &ResourceSlice::has_binding_conditions);
    (waits ? last : pools).push_back(std::move(*pool));
  }
  std::ranges::move(last, std::back_inserter(pools));
  return pools;
}

std::optional<NodePool> DevicePools::seen_from(const Node& node, const Pools::value_type& entry) const {
  SliceList all;
  for (const auto& [name, slice] : entry.second.slices) all.push_back(slice.get());
  SliceList here;
  std::ranges::copy_if(all, std::back_inserter(here),
                       [&](const auto* slice) { return is_for(*slice, node); });
  if (here.empty()) return std::nullopt;
  // Slices of a newer generation may be of other nodes only: what is complete here is taken as it is.
  const auto generation = newest(here);
  here = of_generation(here, generation);
  const auto count = static_cast<std::size_t>(here.front()->slice_count);
  NodePool pool;
  pool.key = &entry.first;
  pool.uses = &entry.second.uses;
  auto known = here;
  if (here.size() != count) {
    if (newest(all) > generation) return std::nullopt;  // the driver replaces them
    known = of_generation(all, generation);
    pool.incomplete = known.size() != count;
    if (pool.incomplete) return pool;
  }
  SliceList with_counters;
  for (const auto* slice : known) {
    if (!slice->unsupported.empty()) pool.invalid = slice->unsupported;
    if (!slice->counters.empty())
      with_counters.push_back(slice);
    else if (std::ranges::find(here, slice) != here.end())
      pool.slices.push_back(slice);
    else
      pool.elsewhere.push_back(slice);
  }
  validate(pool, with_counters);
  return pool;
}

}  // namespace drover::kube::scheduler
