#include "sim/events.h"

#include <algorithm>

namespace drover::sim {

void EventSet::add(const nvmlDevice_st& device, unsigned long long types) {
  const std::scoped_lock lock(mutex_);
  types_[device.position] |= types;
}

bool EventSet::receives_xids(std::size_t position) const {
  const auto found = types_.find(position);
  return found != types_.end() && (found->second & nvmlEventTypeXidCriticalError) != 0;
}

std::optional<XidEvent> EventSet::next(const Machine& machine) {
  const std::scoped_lock lock(mutex_);
  const auto faults = machine.faults();
  for (const auto& device : machine.devices()) {
    std::vector<const Xid*> listed;
    for (const auto& xid : (*faults)[device->position].xids)
      if (receives_xids(xid.told_at.value_or(device->position))) listed.push_back(&xid);
    auto& told = delivered_[device->position];
    // A list that was rewritten counts as new from the first entry that differs.
    const auto [in_told, in_listed] =
        std::ranges::mismatch(told, listed, {}, {}, [](const Xid* xid) -> const Xid& { return *xid; });
    told.erase(in_told, told.end());
    if (in_listed == listed.end()) continue;
    told.push_back(**in_listed);
    return XidEvent{device.get(), **in_listed};
  }
  return std::nullopt;
}

nvmlEventSet_t EventSets::create() {
  const std::scoped_lock lock(mutex_);
  auto set = std::make_shared<EventSet>();
  // The address serves as the handle only; it is never followed as this type.
  auto* handle = reinterpret_cast<nvmlEventSet_t>(set.get());
  sets_.emplace(handle, std::move(set));
  return handle;
}

bool EventSets::free(nvmlEventSet_t handle) {
  const std::scoped_lock lock(mutex_);
  return sets_.erase(handle) > 0;
}

std::shared_ptr<EventSet> EventSets::find(nvmlEventSet_t handle) {
  const std::scoped_lock lock(mutex_);
  const auto found = sets_.find(handle);
  return found == sets_.end() ? nullptr : found->second;
}

}  // namespace drover::sim
