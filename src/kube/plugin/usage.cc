#include "kube/plugin/usage.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace drover::kube {

void Usage::granted(std::string_view resource, std::string_view device_id, Clock::time_point now) {
  awaited_[{std::string(uuid_in(device_id)), std::string(resource)}] = now;
  sum_up();
}

bool Usage::seen(const std::vector<ContainerUse>& containers, Clock::time_point asked) {
  shown_.clear();
  const auto before = std::exchange(users_, {});
  for (const auto& container : containers)
    for (const auto& use : container.devices)
      for (const auto& id : use.device_ids) {
        shown_[std::string(uuid_in(id))].insert(use.resource);
        users_[id] = {fmt::format("'{}/{}'", container.pod_namespace, container.pod), container.forgotten};
      }
  std::erase_if(awaited_, [&](const auto& grant) {
    const auto& [device, since] = grant;
    const auto shown = shown_.find(device.first);
    const bool has_come = shown != shown_.end() && shown->second.contains(device.second);
    return since < asked && (has_come || asked - since > kPatience);
  });
  sum_up();
  return std::ranges::any_of(before, [&](const auto& user) { return !users_.contains(user.first); });
}

std::string Usage::forgotten_user(const std::string& device_id) const {
  const auto user = users_.find(device_id);
  return user != users_.end() && user->second.forgotten ? user->second.pod : "";
}

void Usage::sum_up() {
  holders_ = shown_;
  for (const auto& [device, since] : awaited_) holders_[device.first].insert(device.second);
}

}  // namespace drover::kube
