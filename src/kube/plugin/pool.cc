#include "kube/plugin/pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "kube/gpu_topology.h"

namespace drover::kube {
namespace {

const OfferedResource* find_resource(const std::vector<OfferedResource>& offers, const std::string& name) {
  const auto found = std::ranges::find(offers, name, &OfferedResource::name);
  return found == offers.end() ? nullptr : &*found;
}

}  // namespace

/// Holds the mutex; tells of other holders when it has let go.
class Pool::Change {
 public:
  explicit Change(Pool& pool) : pool_(pool), lock_(pool.mutex_), before_(pool.usage_.holders()) {}
  Change(const Change&) = delete;
  Change& operator=(const Change&) = delete;
  ~Change() {
    const bool others = before_ != pool_.usage_.holders();
    lock_.unlock();
    if (others && pool_.used_) pool_.used_();
  }

 private:
  Pool& pool_;
  std::unique_lock<std::mutex> lock_;
  const Holders before_;
};

Pool::Pool(PluginConfig config, bool claims, std::function<void()> used,
           std::function<DeviceHint(const DeviceQuestion&)> hint,
           std::function<Status(const GpuSet&)> keep_set, ShareReplica share)
    : config_(std::move(config)),
      has_rivals_(claims || config_.resources.size() + config_.shares.size() > 1),
      used_(std::move(used)),
      hint_(std::move(hint)),
      keep_set_(names_cdi_devices(config_) ? std::move(keep_set) : nullptr),
      share_(config_.shares_by(ShareWay::kMps) || config_.shares_by(ShareWay::kGuard) ? std::move(share)
                                                                                      : nullptr) {}

void Pool::update(PoolFacts facts) {
  const std::lock_guard lock(mutex_);
  if (facts.inventory.links != facts_.inventory.links ||
      !std::ranges::equal(facts.inventory.devices, facts_.inventory.devices, {}, &gpu::Device::uuid,
                          &gpu::Device::uuid))
    preferred_ = std::make_shared<const PreferredAllocation>(facts.inventory);
  facts_ = std::move(facts);
  renew();
}

void Pool::saw(const std::vector<ContainerUse>& containers, Usage::Clock::time_point asked) {
  const Change change(*this);
  const bool left = usage_.seen(containers, asked);
  usage_known_ = true;
  renew();
  if (!left) return;
  ++left_;
  ++version_;
  changed_.notify_all();
}

Status Pool::claim(std::set<std::string> uuids) {
  const std::lock_guard lock(mutex_);
  for (const auto& uuid : uuids) {
    if (claimed_.contains(uuid)) continue;
    if (!usage_known_) return fail(ErrorKind::kUnavailable, std::string(kUsageUnknown));
    const auto holder = usage_.holders().find(uuid);
    if (holder != usage_.holders().end())
      return fail(ErrorKind::kConflict, fmt::format("GPU {} is in use as {}", uuid, *holder->second.begin()),
                  "the claim gets it when that pod has ended; one that has both is to be made anew");
  }
  claimed_ = std::move(uuids);
  renew();
  return {};
}

void Pool::found_claimed(std::set<std::string> uuids) {
  const std::lock_guard lock(mutex_);
  claimed_ = std::move(uuids);
  renew();
}

Holders Pool::holders() const {
  const std::lock_guard lock(mutex_);
  return usage_.holders();
}

void Pool::renew() {
  auto troubles = facts_.troubles;
  for (const auto& uuid : claimed_) troubles.try_emplace(uuid, kInUseByClaim);
  if (!usage_known_)
    for (const auto& device : facts_.inventory.devices) troubles.try_emplace(device.uuid, kUsageUnknown);
  auto offers = offer(facts_.inventory, config_, usage_.holders(), troubles, facts_.resources);
  if (offers == offers_) return;
  offers_ = std::move(offers);
  ++version_;
  changed_.notify_all();
}

std::vector<OfferedResource> Pool::offers() const {
  const std::lock_guard lock(mutex_);
  return offers_;
}

Pool::Offer Pool::wait(const std::string& resource, std::uint64_t version,
                       std::chrono::milliseconds patience) const {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, patience, [&] { return version_ != version; });
  const auto* found = find_resource(offers_, resource);
  return {version_, found == nullptr ? std::vector<OfferedDevice>{} : found->devices, left_};
}

/// Those that nobody is said to have, when they are enough: a kubelet that has lost its checkpoint takes what
/// its pods have for free.
std::vector<std::string> Pool::unused(const std::vector<std::string>& available, int size) const {
  auto free = available;
  std::erase_if(free, [&](const auto& id) { return usage_.has(id); });
  if (std::cmp_greater_equal(free.size(), size)) return free;
  free = available;
  std::erase_if(free, [&](const auto& id) { return !usage_.forgotten_user(id).empty(); });
  return free;
}

bool Pool::is_of_whole_gpus(const std::string& resource) const {
  const std::lock_guard lock(mutex_);
  const auto* found = find_resource(offers_, resource);
  return found != nullptr && !found->shared &&
         std::ranges::none_of(found->devices, [&](const OfferedDevice& device) {
           return facts_.resources.contains(device.id);
         });
}

std::vector<std::string> Pool::prefer(const std::string& resource, const std::vector<std::string>& available,
                                      const std::vector<std::string>& must_include, int size) const {
  DeviceHint hint;
  if (hint_ && is_of_whole_gpus(resource)) hint = hint_({resource, size});
  std::unique_lock lock(mutex_);
  auto free = unused(available, size - static_cast<int>(must_include.size()));
  const auto* found = find_resource(offers_, resource);
  if (found != nullptr && found->shared)
    return PreferredAllocation::of_replicas(free, must_include, size, config_.shared_policy);
  const auto preferred = preferred_;
  lock.unlock();
  return preferred->of_gpus(narrowed(free, must_include, size, hint), must_include, size);
}

Result<GrantedGpu> Pool::gpu_of(const OfferedResource& resource, const std::string& id) const {
  const auto offered = std::ranges::find(resource.devices, id, &OfferedDevice::id);
  if (offered == resource.devices.end())
    return fail(ErrorKind::kInvalid, fmt::format("{} has no device '{}'", resource.name, id));
  if (!offered->trouble.empty())
    return fail(ErrorKind::kConflict, fmt::format("GPU {} cannot be given: {}", id, offered->trouble));
  if (const auto pod = usage_.forgotten_user(id); !pod.empty())
    return fail(
        ErrorKind::kConflict,
        fmt::format("GPU {} cannot be given: the pod {} has it, of which the kubelet knows nothing", id, pod),
        "the kubelet has lost its checkpoint of devices; the GPU is free when that pod has ended");
  const auto& devices = facts_.inventory.devices;
  const auto device = std::ranges::find(devices, uuid_in(id), &gpu::Device::uuid);
  const auto node = facts_.nodes.find(uuid_in(id));
  if (device == devices.end() || node == facts_.nodes.end())
    return fail(ErrorKind::kConflict, fmt::format("GPU {} has no device node", id));
  return GrantedGpu{*device, node->second};
}

Status Pool::keep_set(const std::vector<std::string>& ids) const {
  return keep_set_ ? keep_set_(gpu_set(ids)) : Status();
}

std::optional<ReplicaShare> Pool::share_of(const std::string& resource, const std::string& id) const {
  const std::lock_guard lock(mutex_);
  const auto& devices = facts_.inventory.devices;
  const auto device = std::ranges::find(devices, uuid_in(id), &gpu::Device::uuid);
  return device == devices.end() ? std::nullopt : replica_share(*device, resource, config_);
}

/// Of a container that has one replica: several are refused where anybody is held to one.
Status Pool::share(const std::string& resource, const std::vector<std::string>& ids,
                   ContainerGrant* grant) const {
  const auto share = ids.empty() ? std::nullopt : share_of(resource, ids.front());
  if (!share) return {};
  if (!share_) return fail(ErrorKind::kUnsupported, "nobody can be held to a part of a GPU on this node");
  return share_(*share, ids.front(), grant);
}

Result<ContainerGrant> Pool::allocate(const std::string& resource, const std::vector<std::string>& ids) {
  DROVER_TRY(auto granted, take(resource, ids));
  DROVER_CHECK_OK(keep_set(ids));
  DROVER_CHECK_OK(share(resource, ids, &granted));
  return granted;
}

Status Pool::start(const std::string& resource, const std::vector<std::string>& ids) {
  DROVER_CHECK_OK(take_again(resource, ids));
  DROVER_CHECK_OK(keep_set(ids));
  return share(resource, ids, nullptr);
}

Result<ContainerGrant> Pool::take(const std::string& resource, const std::vector<std::string>& ids) {
  const Change change(*this);
  const auto* found = find_resource(offers_, resource);
  if (found == nullptr) return fail(ErrorKind::kInvalid, fmt::format("there is no resource {}", resource));
  if (found->shared && config_.refuse_several_shares && ids.size() > 1)
    return fail(ErrorKind::kInvalid,
                fmt::format("maximum request size for shared resources is 1; found {}", ids.size()));
  std::vector<GrantedGpu> gpus;
  std::set<std::string> given;  // several replicas of one GPU are still one GPU
  for (const auto& id : ids) {
    DROVER_TRY(auto gpu, gpu_of(*found, id));
    if (given.insert(gpu.device.uuid).second) gpus.push_back(std::move(gpu));
  }
  for (const auto& id : ids) usage_.granted(resource, id, Usage::Clock::now());
  auto granted = grant(gpus, config_, facts_.parts, std::to_string(++grants_));
  renew();
  return granted;
}

Status Pool::take_again(const std::string& resource, const std::vector<std::string>& ids) {
  const Change change(*this);
  for (const auto& id : ids) {
    const std::string uuid(uuid_in(id));
    if (claimed_.contains(uuid))
      return fail(ErrorKind::kConflict, fmt::format("GPU {} cannot be used: {}", uuid, kInUseByClaim));
    const auto holder = usage_.holders().find(uuid);
    if (holder == usage_.holders().end()) continue;
    for (const auto& name : holder->second)
      if (name != resource)
        return fail(ErrorKind::kConflict, fmt::format("GPU {} cannot be used: in use as {}", uuid, name));
  }
  for (const auto& id : ids) usage_.granted(resource, id, Usage::Clock::now());
  renew();
  return {};
}

}  // namespace drover::kube
