#include "kube/usage/idle_pods.h"

#include <set>
#include <utility>

#include "gpu/work.h"
#include "kube/usage/attribution.h"

namespace drover::kube {

IdleTimes IdlePods::update(const Sight& sight, Clock::time_point now) {
  const auto uid_of = [&](const metrics::Owner& owner) -> std::string {
    const auto found = sight.uids.find(pod_of(owner));
    return found == sight.uids.end() ? "" : found->second;
  };
  std::set<std::string> pods;
  gpu::GpuHolders holders;
  // MIG devices are told of under their own UUIDs, too; how busy they are is told of the whole GPU.
  for (const auto& [uuid, usage] : sight.usage)
    if (const auto owners = sight.holders.find(uuid); owners != sight.holders.end())
      for (const auto& owner : owners->second)
        if (auto uid = uid_of(owner); !uid.empty()) {
          holders[uuid].insert(uid);
          pods.insert(std::move(uid));
        }
  std::function<std::string(std::uint32_t)> owner_of;
  if (sight.owner_of) owner_of = [&](std::uint32_t pid) { return uid_of(sight.owner_of(pid)); };
  const auto busy = gpu::who_works(sight.usage, holders, owner_of);
  std::erase_if(busy_at_, [&](const auto& known) { return !pods.contains(known.first); });
  IdleTimes times;
  for (const auto& uid : pods) {
    auto& at = busy_at_.try_emplace(uid, now).first->second;
    if (busy.contains(uid)) at = now;
    times[uid] = std::chrono::floor<std::chrono::milliseconds>(now - at);
  }
  return times;
}

}  // namespace drover::kube
