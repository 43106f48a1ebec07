#include "sim/cuda/driver.h"

#include <dlfcn.h>
#include <pthread.h>

#include <cstdio>
#include <cstdlib>

#include "sim/cuda/pool.h"
#include "sim/cuda/visible.h"

namespace drover::sim::cuda {
namespace {

std::mutex init_mutex;
std::atomic<Driver*> the_driver{nullptr};
std::atomic<bool> is_forked{false};

Settings own_settings() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&cuInit), &info) == 0) return settings_from_environment({});
  std::error_code error;
  return settings_from_environment(std::filesystem::canonical(info.dli_fname, error));
}

void forget_in_child() {
  is_forked = true;
  the_driver = nullptr;
}

/// The driver lists no GPU that is gone, and one that is cut into parts only by its parts, which there are
/// none of here.
std::vector<const nvmlDevice_st*> usable_devices(const Machine& machine) {
  const auto mig = machine.mig().current();
  std::vector<const nvmlDevice_st*> usable;
  for (const auto* device : machine.listed())
    if (!(*mig)[device->position].enabled) usable.push_back(device);
  return usable;
}

}  // namespace

CUresult Driver::init() {
  const std::scoped_lock lock(init_mutex);
  if (is_forked) return CUDA_ERROR_NOT_INITIALIZED;
  if (the_driver != nullptr) return CUDA_SUCCESS;
  const auto settings = own_settings();
  auto machine = Machine::open(settings);
  if (!machine) {
    if (settings.verbose) std::fprintf(stderr, "drover-sim: %s\n", to_string(machine.error()).c_str());
    return CUDA_ERROR_NO_DEVICE;
  }
  auto live = LiveProcess::open(settings.live, (*machine)->profile().gpus.size(),
                                (*machine)->limits_memory() ? (*machine)->groups() : Groups{});
  if (!live) return CUDA_ERROR_SYSTEM_NOT_READY;
  std::unique_ptr<Driver> driver(new Driver(std::move(*machine), std::move(live)));
  if (driver->devices_.empty()) return CUDA_ERROR_NO_DEVICE;
  static const int watched = ::pthread_atfork(nullptr, nullptr, &forget_in_child);
  if (watched != 0) return CUDA_ERROR_OPERATING_SYSTEM;
  the_driver = driver.release();
  return CUDA_SUCCESS;
}

Driver* Driver::get() {
  return the_driver.load(std::memory_order_acquire);
}

bool Driver::forked() {
  return is_forked;
}

int Driver::version() {
  static const int version = [] {
    constexpr int kNewest = 13050;
    const auto profile = load_profile(own_settings().profile);
    return profile ? 1000 * profile->cuda_major + 10 * profile->cuda_minor : kNewest;
  }();
  return version;
}

Driver::Driver(std::shared_ptr<const Machine> machine, std::unique_ptr<LiveProcess> live)
    : machine_(std::move(machine)), live_(std::move(live)) {
  const auto usable = usable_devices(*machine_);
  std::vector<std::string> uuids;
  for (const auto* device : usable) uuids.push_back(device->gpu->uuid);
  const char* const wanted = std::getenv("CUDA_VISIBLE_DEVICES");
  for (const auto index :
       visible_devices(uuids, wanted == nullptr ? std::nullopt : std::optional<std::string_view>(wanted))) {
    auto& device = *devices_.emplace_back(std::make_unique<Device>());
    device.ordinal = static_cast<CUdevice>(devices_.size() - 1);
    device.position = usable[index]->position;
    device.gpu = usable[index]->gpu;
    device.default_pool = device.current_pool = std::make_shared<Pool>(*this, device, 0);
    pools.add(device.default_pool);
  }
}

Device* Driver::device(CUdevice ordinal) const {
  return ordinal < 0 || static_cast<std::size_t>(ordinal) >= devices_.size()
             ? nullptr
             : devices_[static_cast<std::size_t>(ordinal)].get();
}

bool Driver::lost(const Device& device) const {
  const auto faults = machine_->faults();
  return (*faults)[device.position].lost || (*faults)[device.position].absent;
}

std::uint64_t Driver::room(const Device& device) const {
  const auto faults = machine_->faults();
  auto room = device.total_bytes();
  for (const auto& process : (*faults)[device.position].processes)
    room -= std::min(room, process.memory_mib << 20);
  return room;
}

bool Driver::charge(const Device& device, std::uint64_t bytes) {
  return bytes == 0 || live_->reserve(device.position, bytes, room(device));
}

void Driver::discharge(const Device& device, std::uint64_t bytes) {
  if (bytes != 0) live_->release(device.position, bytes);
}

std::uint64_t Driver::free_bytes(const Device& device) {
  const auto all = room(device);
  const auto free = all - std::min(all, live_->held_by_all(device.position));
  const auto own = live_->own_limit(device.position);
  return own ? std::min(free, own->hard - std::min(own->hard, own->held)) : free;
}

std::uint64_t Driver::seen_bytes(const Device& device) const {
  const auto own = live_->own_limit(device.position);
  return own ? std::min(own->hard, device.total_bytes()) : device.total_bytes();
}

Heap::Account Driver::account(const Device& device) {
  return {[this, &device](std::uint64_t bytes) { return charge(device, bytes); },
          [this, &device](std::uint64_t bytes) { discharge(device, bytes); }};
}

}  // namespace drover::sim::cuda
