// Memory of one process that another of the same machine has mapped. It belongs to its exporter: the importer
// is charged nothing, and what it mapped stays readable when the exporter frees it.

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "base/fd.h"
#include "sim/cuda/call.h"

using namespace drover::sim;
using namespace drover::sim::cuda;

namespace {

constexpr std::uint64_t kHandleMagic = 0x4456'5249'5043'0001;

/// What a handle says; the rest of it is zero. The exporter is named by its slot, as its pid has another
/// number in other namespaces.
struct Exported {
  std::uint64_t magic = kHandleMagic;
  std::uint64_t slot = 0;
  std::int32_t descriptor = -1;
  std::int32_t gpu = 0;  ///< position in the profile
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
};
static_assert(sizeof(Exported) <= sizeof(CUipcMemHandle));

/// The arena of another process; none when it is gone, hidden from this one, or nothing that one could map.
drover::UniqueFd open_arena(const Exported& exported, unsigned int pid) {
  const auto path = "/proc/" + std::to_string(pid) + "/fd/" + std::to_string(exported.descriptor);
  drover::UniqueFd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat info{};
  if (!fd.valid() || ::fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) return {};
  const auto length = static_cast<std::uint64_t>(info.st_size);
  if (exported.size == 0 || exported.size > length || exported.offset > length - exported.size) return {};
  return fd;
}

struct Mapped {
  Mapped(std::uint64_t address_, std::uint64_t size_) : address(address_), size(size_) {}
  ~Mapped() { free_addresses(address, size); }
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;

  const std::uint64_t address;
  const std::uint64_t size;
};

}  // namespace

CUresult cuIpcGetMemHandle(CUipcMemHandle* out, CUdeviceptr address) {
  return in_context([&](Context& context) {
    auto& driver = context.driver;
    const auto range = driver.memory.find(address);
    if (out == nullptr || !range || range->kind != RangeKind::kDevice) return CUDA_ERROR_INVALID_VALUE;
    const auto owner = range->context.lock();
    if (!owner || !driver.live().shared()) return CUDA_ERROR_NOT_SUPPORTED;
    Exported exported{.slot = driver.live().slot(),
                      .descriptor = driver.arena.descriptor(),
                      .gpu = static_cast<std::int32_t>(range->device->position)};
    const std::scoped_lock lock(owner->mutex);
    // Whole pages are mapped: a small piece is exported with what lies around it, as by the real driver.
    exported.offset = owner->heap->offset_of(range->address);
    exported.size = range->size;
    *out = {};
    std::memcpy(out, &exported, sizeof(exported));
    return CUDA_SUCCESS;
  });
}

CUresult cuIpcOpenMemHandle_v2(CUdeviceptr* out, CUipcMemHandle handle, unsigned int) {
  return in_context([&](Context& context) {
    auto& driver = context.driver;
    Exported exported;
    std::memcpy(&exported, &handle, sizeof(exported));
    if (out == nullptr || exported.magic != kHandleMagic) return CUDA_ERROR_INVALID_VALUE;
    if (!driver.live().shared()) return CUDA_ERROR_NOT_SUPPORTED;
    if (exported.slot == driver.live().slot()) return CUDA_ERROR_INVALID_CONTEXT;
    drover::UniqueFd fd;
    for (const auto& [slot, pid] : driver.live().slots())
      if (slot == exported.slot && pid != 0) fd = open_arena(exported, pid);
    if (!fd.valid()) return CUDA_ERROR_INVALID_VALUE;
    const auto begin = exported.offset / kBlock * kBlock;
    const auto size = in_blocks(exported.offset - begin + exported.size);
    const auto address = reserve_addresses(size, kBlock);
    if (address == 0) return CUDA_ERROR_OUT_OF_MEMORY;
    auto mapped = std::make_shared<Mapped>(address, size);
    if (!map_at(address, size, fd.get(), begin)) return CUDA_ERROR_OUT_OF_MEMORY;
    *out = address + (exported.offset - begin);
    driver.memory.add({.address = *out,
                       .size = exported.size,
                       .kind = RangeKind::kImported,
                       .device = &context.device,
                       .context = context.weak_from_this(),
                       .id = driver.next_id(),
                       .backing = std::move(mapped)});
    return CUDA_SUCCESS;
  });
}
DROVER_SAME_AS(cuIpcOpenMemHandle_v2, cuIpcOpenMemHandle);

CUresult cuIpcCloseMemHandle(CUdeviceptr address) {
  return in_context([&](Context& context) {
    context.queue.drain();
    return context.driver.memory.take(address, RangeKind::kImported) ? CUDA_SUCCESS
                                                                     : CUDA_ERROR_INVALID_VALUE;
  });
}
