#pragma once

// The handles that the C interface gives out for parts of a GPU. One of them stands for a place and not for
// what is there: it stays valid, and the same, until the library is shut down. Thread safe.

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "gpu/nvml_abi.h"

namespace drover::sim {

struct InstancePlace {
  std::size_t position = 0;  ///< of the GPU in the profile
  unsigned int gpu_instance = 0;
  unsigned int compute_instance = 0;  ///< 0 for a GPU instance

  auto operator<=>(const InstancePlace&) const = default;
};

/// Of one C type; the handle is an address that is never followed as that type.
template <typename Handle>
class HandleTable {
 public:
  Handle of(const InstancePlace& place) {
    const std::scoped_lock lock(mutex_);
    auto& key = places_[place];
    if (!key) key = std::make_unique<InstancePlace>(place);
    return reinterpret_cast<Handle>(key.get());
  }
  std::optional<InstancePlace> find(Handle handle) const {
    const std::scoped_lock lock(mutex_);
    for (const auto& [place, key] : places_)
      if (reinterpret_cast<Handle>(key.get()) == handle) return place;
    return std::nullopt;
  }

 private:
  mutable std::mutex mutex_;
  std::map<InstancePlace, std::unique_ptr<InstancePlace>> places_;
};

struct MigHandles {
  HandleTable<nvmlDevice_t> devices;
  HandleTable<nvmlGpuInstance_t> gpu_instances;
  HandleTable<nvmlComputeInstance_t> compute_instances;
};

}  // namespace drover::sim
