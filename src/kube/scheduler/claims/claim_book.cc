#include "kube/scheduler/claims/claim_book.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/shorten.h"

namespace drover::kube::scheduler {
namespace {

using placement::Eligibility;

constexpr const char* kElsewhere = "node(s) were not where the devices of its claims are";
constexpr std::size_t kMostKnown = 256;
constexpr std::size_t kMostNodeChanges = 100'000;  // that are told apart
constexpr Nanos kNanosOfOne = 1'000'000'000;
constexpr Nanos kMostBytesTold = std::numeric_limits<std::int64_t>::max();
constexpr std::string_view kMemoryCapacity = "memory";
constexpr std::string_view kShareCapacity = "share";
constexpr int kThousandths = 1000;

const std::string* text_attribute(const DeviceKind& kind, std::string_view name) {
  for (const auto& attribute : kind.attributes)
    if (attribute->name == name) return std::get_if<std::string>(&attribute->value);
  return nullptr;
}

ClaimBook::Claims without_allocation(const ClaimBook::Claims& claims) {
  ClaimBook::Claims open;
  std::ranges::copy_if(claims, std::back_inserter(open),
                       [](const auto* claim) { return !claim->allocation; });
  return open;
}

const DeviceCapacity* capacity_named(const DeviceKind& kind, std::string_view name) {
  const auto found = std::ranges::find(kind.capacities, name, [](const auto& each) { return each->name; });
  return found == kind.capacities.end() ? nullptr : found->get();
}

std::uint64_t bytes_in(const Amount& amount) {
  return static_cast<std::uint64_t>(std::clamp<Nanos>(amount.value / kNanosOfOne, 0, kMostBytesTold));
}

/// nullopt for what is no whole GPU.
std::optional<gpu::Device> gpu_of(const Device& device, int index) {
  const auto* const uuid = text_attribute(*device.kind, "uuid");
  const auto* const type = text_attribute(*device.kind, "type");
  if (uuid == nullptr || (type != nullptr && *type != "gpu")) return std::nullopt;
  gpu::Device found{.uuid = *uuid, .index = index};
  if (const auto* const model = text_attribute(*device.kind, "productName")) found.model = *model;
  if (const auto* const memory = capacity_named(*device.kind, kMemoryCapacity);
      memory != nullptr && memory->value.value > 0)
    found.memory_bytes = bytes_in(memory->value);
  return found;
}

/// As far as it is said in the words of our driver. How it is counted a driver may say otherwise: what is
/// allocated tells.
placement::Share share_of(const DeviceWish& wish) {
  if (const auto found = wish.capacity.find(kShareCapacity); found != wish.capacity.end()) {
    const auto milli = found->second.value / kNanosOfOne;
    return {.milli = static_cast<int>(std::clamp<Nanos>(milli, 1, kThousandths))};
  }
  if (const auto found = wish.capacity.find(kMemoryCapacity); found != wish.capacity.end())
    return {.memory_bytes = std::clamp<std::uint64_t>(bytes_in(found->second), 1, placement::kMostGpuMemory)};
  return {};
}

bool takes_devices(const DeviceRequest& request) {
  return !request.wishes.empty() && !request.wishes.front().all && !request.wishes.front().admin;
}

/// Of claims that have no allocation.
int gpus_in(const ClaimBook::Claims& claims) {
  std::int64_t count = 0;
  for (const auto* claim : claims)
    for (const auto& request : claim->spec->requests)
      if (takes_devices(request)) count += request.wishes.front().count;
  return static_cast<int>(std::min<std::int64_t>(count, kMostDevicesOfClaim * 16));
}

/// A whole one where not all are asked for in the same way.
placement::Share share_in(const ClaimBook::Claims& claims) {
  std::optional<placement::Share> all;
  for (const auto* claim : claims)
    for (const auto& request : claim->spec->requests) {
      if (!takes_devices(request)) continue;
      const auto share = share_of(request.wishes.front());
      if (all.value_or(share) != share) return {};
      all = share;
    }
  return all.value_or(placement::Share());
}

}  // namespace

void ClaimBook::note_node(const std::string& name) {
  ++changes_;
  if (name.empty() || node_changes_.size() >= kMostNodeChanges) {
    node_changes_.clear();
    changes_everywhere_ = changes_;
  } else {
    node_changes_[name] = changes_;
  }
}

bool ClaimBook::holds(const Verdict& verdict, const std::string& node) const {
  if (verdict.changes < changes_everywhere_) return false;
  const auto found = node_changes_.find(node);
  return found == node_changes_.end() || found->second <= verdict.changes;
}

/// `node`: the only one whose devices change; "" when others' may.
template <typename Change>
void ClaimBook::change_devices(const std::string& node, const Change& change) {
  note_node(node);
  look_again();
  change(bare_);
  change(pools_);
}

void ClaimBook::put_slice(ResourceSlice slice) {
  const auto before = node_of_slice(slice.name);
  forget_gpus(slice.name);
  note_gpus(slice);
  const bool same = slice.nodes.node_name == before || before.empty();
  change_devices(same ? slice.nodes.node_name : "", [&](DevicePools& pools) { pools.put_slice(slice); });
}

void ClaimBook::remove_slice(const std::string& name) {
  const auto node = node_of_slice(name);
  forget_gpus(name);
  change_devices(node, [&](DevicePools& pools) { pools.remove_slice(name); });
}

void ClaimBook::put_class(const DeviceClass& device_class) {
  change_devices("", [&](DevicePools& pools) { pools.put_class(device_class); });
}

void ClaimBook::remove_class(const std::string& name) {
  change_devices("", [&](DevicePools& pools) { pools.remove_class(name); });
}

void ClaimBook::put_taint_rule(const DeviceTaintRule& rule) {
  change_devices("", [&](DevicePools& pools) { pools.put_taint_rule(rule); });
}

void ClaimBook::remove_taint_rule(const std::string& name) {
  change_devices("", [&](DevicePools& pools) { pools.remove_taint_rule(name); });
}

void ClaimBook::put_claim(ResourceClaim claim) {
  if (claim.for_extended_resources) made_[owner_of(claim)].insert(claim.uid);
  pools_.put_claim(std::move(claim));
}

void ClaimBook::remove_claim(const std::string& uid) {
  if (const auto* const claim = pools_.claim(uid); claim != nullptr && claim->for_extended_resources)
    if (const auto found = made_.find(owner_of(*claim)); found != made_.end()) {
      found->second.erase(uid);
      if (found->second.empty()) made_.erase(found);
    }
  pools_.remove_claim(uid);
}

ClaimBook::Claims ClaimBook::made_for(const Pod& pod) const {
  Claims claims;
  if (const auto found = made_.find({pod.name_space, pod.uid}); found != made_.end())
    for (const auto& uid : found->second)
      if (const auto* const claim = pools_.claim(uid)) claims.push_back(claim);
  return claims;
}

std::vector<ClaimBook::TaintedPod> ClaimBook::ended_by_taints() const {
  std::vector<TaintedPod> pods;
  const auto ends = [](const Taint& taint) { return taint.effect == "NoExecute"; };
  const auto look_at = [&](const ResourceClaim& claim) {
    for (const auto& device : claim.allocation->devices) {
      const auto taints = pools_.taints_of(device.id);
      const auto found = std::ranges::find_if(taints, ends);
      if (found == taints.end()) continue;
      pods.push_back({claim.name_space, claim.owner_uid, *found});
      return true;
    }
    return false;
  };
  for (const auto& [owner, uids] : made_)
    for (const auto& uid : uids)
      if (const auto* const claim = pools_.claim(uid))
        if (claim->allocation && look_at(*claim)) break;
  return pods;
}

bool ClaimBook::may_need_claim(const PodTemplate& pod) const {
  return std::ranges::any_of(pod.requests.others, [&](const auto& resource) {
    return resource.second != 0 && pools_.class_for_resource(resource.first) != nullptr;
  });
}

std::optional<ExtendedResourceClaim> ClaimBook::claim_for(const PodTemplate& pod, const Node& node) const {
  const auto names = resources_by_claim(pod.requests, node, pools_);
  if (names.empty()) return std::nullopt;
  return extended_resource_claim(pod.containers, names, pools_);
}

void ClaimBook::note_gpus(const ResourceSlice& slice) {
  const auto& node = slice.nodes.node_name;
  if (node.empty()) return;
  auto& of_slice = gpus_[node][slice.name];
  for (const auto& device : slice.devices) {
    auto gpu = gpu_of(device, static_cast<int>(of_slice.size()));
    if (!gpu) continue;
    DeviceId id{slice.driver, slice.pool, device.name};
    by_device_.insert_or_assign(id, PublishedGpu{gpu->uuid, device.kind, node});
    places_.insert_or_assign(gpu->uuid, Place{id, node});
    of_slice.emplace_back(std::move(id), std::move(*gpu));
  }
  node_of_slice_.insert_or_assign(slice.name, node);
  auto& all = published_[node];
  all.clear();
  for (const auto& [unused, gpus] : gpus_[node])
    for (const auto& [id, gpu] : gpus) all.push_back(gpu);
}

void ClaimBook::forget_gpus(const std::string& slice) {
  const auto found = node_of_slice_.find(slice);
  if (found == node_of_slice_.end()) return;
  auto& of_node = gpus_[found->second];
  for (const auto& [id, gpu] : of_node[slice]) {
    by_device_.erase(id);
    places_.erase(gpu.uuid);
  }
  of_node.erase(slice);
  auto& all = published_[found->second];
  all.clear();
  for (const auto& [unused, gpus] : of_node)
    for (const auto& [id, gpu] : gpus) all.push_back(gpu);
  if (of_node.empty()) {
    gpus_.erase(found->second);
    published_.erase(found->second);
  }
  node_of_slice_.erase(found);
}

const std::vector<gpu::Device>* ClaimBook::published(const std::string& node) const {
  const auto found = published_.find(node);
  return found == published_.end() ? nullptr : &found->second;
}

Result<ClaimBook::Claims> ClaimBook::claims_of(const Pod& pod) const {
  Claims claims;
  for (const auto& reference : pod.claims) {
    if (reference.claim.empty()) {
      if (reference.needed)
        return fail(ErrorKind::kNotFound,
                    fmt::format("waits for its claim '{}' to be made", shortened(reference.entry)));
      continue;
    }
    const auto* const claim = pools_.claim(pod.name_space, reference.claim);
    if (claim == nullptr)
      return fail(ErrorKind::kNotFound,
                  fmt::format("resourceclaim \"{}\" not found", shortened(reference.claim)));
    if (claim->terminating)
      return fail(ErrorKind::kConflict,
                  fmt::format("resourceclaim \"{}\" is being deleted", shortened(reference.claim)));
    if (reference.from_template && claim->owner_uid != pod.uid)
      return fail(ErrorKind::kConflict,
                  fmt::format("resourceclaim \"{}\" was made for another pod", shortened(reference.claim)));
    if (std::ranges::find(claims, claim) == claims.end()) claims.push_back(claim);
  }
  return claims;
}

/// One run over all nodes.
class ClaimBook::Narrowing {
 public:
  using Verdicts = std::unordered_map<std::string, Verdict>;

  Narrowing(const ClaimBook& book, const Eligibility& nodes, const Wanted& wanted)
      : book_(book), wanted_(wanted), narrowed_(std::make_shared<Eligibility>(nodes)) {
    for (const auto* claim : wanted.claims) (claim->allocation ? allocated_ : open_).push_back(claim);
  }

  const Claims& open() const { return open_; }
  bool some_are_allocated() const { return !allocated_.empty(); }

  /// `verdicts` are those of an earlier run for claims like these.
  Result<Needs> over(const Cluster& cluster, Verdicts& verdicts) {
    for (const auto& [name, state] : cluster.nodes())
      if (state.node && narrowed_->why_not(name) == nullptr)
        DROVER_CHECK_OK(look_at(*state.node, verdicts[name]));
    const int made = made_gpus_.value_or(0);
    return Needs{std::move(narrowed_), gpus_in(open_) + made,
                 made == 0 ? share_in(open_) : placement::Share()};
  }

 private:
  Status look_at(const Node& node, Verdict& verdict) {
    const auto is_here = [&](const ResourceClaim* claim) {
      return is_available_on(*claim->allocation, node);
    };
    if (!std::ranges::all_of(allocated_, is_here)) return refuse(node.name, kElsewhere);
    if (!book_.holds(verdict, node.name)) {
      DROVER_TRY(verdict, judge(node));
    }
    if (!verdict.refusal.empty()) return refuse(node.name, verdict.refusal);
    made_gpus_ = std::max(0, std::min(made_gpus_.value_or(verdict.made_gpus), verdict.made_gpus));
    return {};
  }

  Result<Verdict> judge(const Node& node) {
    Verdict verdict{.changes = book_.changes_, .refusal = {}, .made_gpus = 0};
    const auto* const made = made_on(node);
    if (made == nullptr && open_.empty()) return verdict;
    auto claims = open_;
    ResourceClaim claim;
    if (made != nullptr) {
      claim.spec = made->spec;
      claims.push_back(&claim);
    }
    const auto found = scheduler::allocate(book_.bare_, node, claims, {.admin_access = wanted_.admin_access});
    if (!found && made == nullptr) return Failure(found.error());
    // Other nodes may offer the resource themselves, whatever is wrong with the class.
    verdict.refusal = found ? found->refusal : found.error().message;
    if (verdict.refusal.empty() && made != nullptr)
      verdict.made_gpus = static_cast<int>(book_.gpus_of(found->allocations.back()).size()) - made->by_limits;
    return verdict;
  }

  Status refuse(const std::string& node, const std::string& reason) {
    const auto [number, added] = numbers_.try_emplace(reason, narrowed_->reasons.size());
    if (added) narrowed_->reasons.push_back(reason);
    narrowed_->refused.emplace(node, number->second);
    return {};
  }

  struct Made {
    std::shared_ptr<const ClaimSpec> spec;
    int by_limits = 0;  ///< GPUs that limits count already
  };
  /// The same for nodes that lack the same resources.
  const Made* made_on(const Node& node) {
    if (!wanted_.by_limits) return nullptr;
    const auto& requests = wanted_.by_limits->requests;
    auto names = resources_by_claim(requests, node, book_.pools_);
    if (names.empty()) return nullptr;
    auto& made = made_[names];
    if (made.spec) return &made;
    if (names.contains(wanted_.gpu_resource))
      made.by_limits = static_cast<int>(
          std::min<std::int64_t>(requests.others.at(wanted_.gpu_resource), kMostDevicesOfClaim));
    made.spec = std::make_shared<const ClaimSpec>(
        extended_resource_claim(wanted_.by_limits->containers, names, book_.pools_).spec);
    return &made;
  }

  const ClaimBook& book_;
  const Wanted& wanted_;
  Claims open_, allocated_;
  std::shared_ptr<Eligibility> narrowed_;
  std::map<std::string, std::size_t> numbers_;  ///< of reasons
  std::map<ResourceNames, Made> made_;
  std::optional<int> made_gpus_;  ///< the fewest on any node
};

Result<ClaimBook::Needs> ClaimBook::narrow(const std::shared_ptr<const Eligibility>& nodes,
                                           const Cluster& cluster, const Wanted& wanted) {
  Narrowing narrowing(*this, *nodes, wanted);
  if (narrowing.some_are_allocated()) {
    Narrowing::Verdicts verdicts;
    return narrowing.over(cluster, verdicts);
  }
  ClaimSpecs specs;
  std::vector<const ClaimSpec*> key;
  for (const auto* claim : narrowing.open()) {
    specs.push_back(claim->spec);
    key.push_back(claim->spec.get());
  }
  if (known_.size() > kMostKnown) known_.clear();
  auto& known = known_[{key, wanted.by_limits.get(), wanted.admin_access}];
  if (known.nodes == nodes && known.changes == changes_) return known.needs;
  known.specs = std::move(specs);
  known.by_limits = wanted.by_limits;
  known.nodes = nullptr;
  DROVER_TRY(known.needs, narrowing.over(cluster, known.verdicts));
  known.nodes = nodes;
  known.changes = changes_;
  return known.needs;
}

Result<Allocated> ClaimBook::allocate(const Node& node, const Claims& claims,
                                      const std::vector<std::string>& gpus, bool admin_access) {
  AllocateOptions options{.admin_access = admin_access};
  for (const auto& uuid : gpus)
    if (const auto found = places_.find(uuid); found != places_.end())
      options.first.push_back(found->second.device);
  const auto open = without_allocation(claims);
  if (open.empty()) return Allocated{};
  auto& refusals = refused(open, admin_access);
  if (const auto found = refusals.find(node.name); found != refusals.end())
    return Allocated{{}, found->second};
  auto allocated = scheduler::allocate(pools_, node, open, options);
  if (allocated && !allocated->fits()) refusals.emplace(node.name, allocated->refusal);
  return allocated;
}

ClaimBook::Refusals& ClaimBook::refused(const Claims& claims, bool admin_access) {
  ClaimSpecs specs;
  for (const auto* claim : without_allocation(claims)) specs.push_back(claim->spec);
  return refused_[{std::move(specs), admin_access}];
}

std::vector<std::string> ClaimBook::gpus_of(const ClaimAllocation& allocation) const {
  std::vector<std::string> uuids;
  for (const auto& device : allocation.devices)
    if (const auto found = by_device_.find(device.id); found != by_device_.end() && !device.admin)
      uuids.push_back(found->second.uuid);
  return uuids;
}

std::vector<placement::Grant> ClaimBook::grants_of(const ClaimAllocation& allocation) const {
  std::vector<placement::Grant> grants;
  for (const auto& device : allocation.devices) {
    const auto found = by_device_.find(device.id);
    if (found == by_device_.end() || device.admin) continue;
    auto& grant = grants.emplace_back(placement::Grant{.uuid = found->second.uuid});
    if (device.share_id.empty()) continue;
    grant.milli = 0;
    for (const auto& [name, amount] : device.consumed) {
      const auto* const whole = capacity_named(*found->second.kind, name);
      if (whole == nullptr || whole->value.value <= 0) continue;
      const auto milli = amount.value * kThousandths / whole->value.value;
      grant.milli = std::max(grant.milli, static_cast<int>(std::min<Nanos>(milli, kThousandths)));
      if (name == kMemoryCapacity) grant.memory_bytes = bytes_in(amount);
    }
    if (grant.milli == kThousandths) grant.memory_bytes = 0;
  }
  return grants;
}

std::set<std::string> ClaimBook::nodes_of(const ResourceClaim& claim) const {
  std::set<std::string> nodes;
  if (!claim.allocation) return nodes;
  for (const auto& device : claim.allocation->devices)
    if (const auto found = by_device_.find(device.id); found != by_device_.end())
      nodes.insert(found->second.node);
  return nodes;
}

bool ClaimBook::is_claimed(const std::string& node, const std::string& gpu) const {
  const auto found = gpus_.find(node);
  if (found == gpus_.end()) return false;
  for (const auto& [slice, gpus] : found->second)
    for (const auto& [id, device] : gpus)
      if (device.uuid == gpu && pools_.is_in_use(id)) return true;
  return false;
}

std::string ClaimBook::node_of_slice(const std::string& name) const {
  const auto found = node_of_slice_.find(name);
  return found == node_of_slice_.end() ? "" : found->second;
}

std::string ClaimBook::node_of(const std::string& gpu) const {
  const auto found = places_.find(gpu);
  return found == places_.end() ? "" : found->second.node;
}

}  // namespace drover::kube::scheduler
