#pragma once

// The devices' health, for whoever waits for news of it. Thread safe.

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace drover::kube::dra {

struct DeviceReport {
  std::string device;   ///< "gpu-3"
  std::string ailment;  ///< what keeps it from being given; "" for a healthy one

  bool operator==(const DeviceReport&) const = default;
};

class HealthBoard {
 public:
  struct News {
    std::uint64_t edition = 0;
    std::vector<DeviceReport> devices;
  };
  void post(std::vector<DeviceReport> devices);
  /// As soon as there is another edition than `seen`, or after `patience`.
  News wait(std::uint64_t seen, std::chrono::milliseconds patience) const;

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  News news_;
};

}  // namespace drover::kube::dra
