#include "api/marathon/parts.h"

#include "marathon/app.h"

namespace drover::api::marathon_v2 {
namespace {

constexpr std::size_t kMostKnown = 100'000;

}  // namespace

std::vector<int> ServicePorts::of(const workload::Service& service) {
  const std::lock_guard lock(mutex_);
  if (known_.size() > kMostKnown) known_.clear();
  const auto key = std::pair(service.id, service.version);
  const auto found = known_.find(key);
  if (found != known_.end()) return found->second;
  return known_.emplace(key, marathon::service_ports(service)).first->second;
}

}  // namespace drover::api::marathon_v2
