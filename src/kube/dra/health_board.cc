#include "kube/dra/health_board.h"

#include <utility>

namespace drover::kube::dra {

void HealthBoard::post(std::vector<DeviceReport> devices) {
  const std::scoped_lock lock(mutex_);
  if (news_.edition > 0 && news_.devices == devices) return;
  news_ = {news_.edition + 1, std::move(devices)};
  changed_.notify_all();
}

HealthBoard::News HealthBoard::wait(std::uint64_t seen, std::chrono::milliseconds patience) const {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, patience, [&] { return news_.edition != seen; });
  return news_;
}

}  // namespace drover::kube::dra
