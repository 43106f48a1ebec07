#include "sim/cuda/context.h"

#include <unordered_map>

#include "sim/cuda/array.h"
#include "sim/cuda/module.h"
#include "sim/cuda/pool.h"

namespace drover::sim::cuda {
namespace {

constexpr std::uint64_t kDefaultHeap = 8 << 20;
constexpr std::uint64_t kDefaultFifo = 1 << 20;
constexpr std::uint64_t kDefaultStack = 1024;
constexpr std::uint64_t kThreadsOfAMultiprocessor = 2048;

/// What a context with these limits takes.
std::uint64_t context_bytes(const Context& context) {
  const auto above = [&](int limit, std::uint64_t included) {
    const auto value = context.limits[static_cast<std::size_t>(limit)];
    return value > included ? value - included : 0;
  };
  const auto threads =
      static_cast<std::uint64_t>(context.device.gpu->model.multiprocessors) * kThreadsOfAMultiprocessor;
  return kContextBytes + in_blocks(above(CU_LIMIT_MALLOC_HEAP_SIZE, kDefaultHeap)) +
         in_blocks(above(CU_LIMIT_PRINTF_FIFO_SIZE, kDefaultFifo)) +
         in_blocks(above(CU_LIMIT_STACK_SIZE, kDefaultStack) * threads);
}

std::array<std::uint64_t, CU_LIMIT_MAX> default_limits() {
  std::array<std::uint64_t, CU_LIMIT_MAX> limits{};
  limits[CU_LIMIT_STACK_SIZE] = kDefaultStack;
  limits[CU_LIMIT_PRINTF_FIFO_SIZE] = kDefaultFifo;
  limits[CU_LIMIT_MALLOC_HEAP_SIZE] = kDefaultHeap;
  return limits;
}

}  // namespace

Context::Context(Driver& driver_, Device& device_, bool primary_, unsigned int flags_, unsigned int version_)
    : driver(driver_),
      device(device_),
      primary(primary_),
      flags(flags_),
      version(version_),
      id(driver_.next_id()),
      queue(driver_.live(), device_.position),
      heap(std::make_shared<Heap>(driver_.arena, driver_.account(device_))),
      limits(default_limits()) {}

std::shared_ptr<Context> Context::make(Driver& driver, Device& device, bool primary, unsigned int flags,
                                       unsigned int version, CUresult& result) {
  result = CUDA_ERROR_DEVICE_UNAVAILABLE;
  if (driver.lost(device)) return nullptr;
  result = CUDA_ERROR_OUT_OF_MEMORY;
  if (!driver.charge(device, kContextBytes)) return nullptr;
  auto context = std::make_shared<Context>(driver, device, primary, flags, version);
  context->default_stream = std::make_shared<Stream>(context, 0, 0, driver.next_id());
  driver.contexts.add(context);
  result = CUDA_SUCCESS;
  return context;
}

void Context::destroy() {
  if (destroyed.exchange(true)) return;
  queue.drain();
  queue.stop();
  if (!primary) driver.contexts.remove(Handles<Context, CUcontext>::to_handle(this));
  const auto of_this = [this](const std::weak_ptr<Context>& owner) { return owner.lock().get() == this; };
  driver.streams.remove_if([&](const Stream& stream) { return of_this(stream.context); });
  driver.modules.remove_if([&](Module& module) {
    if (!of_this(module.context)) return false;
    module.unload();
    return true;
  });
  driver.arrays.remove_if([&](const Array& array) { return of_this(array.context); });
  driver.mipmaps.remove_if([&](const Mipmap& mipmap) { return of_this(mipmap.levels.front()->context); });
  driver.memory.take_if([&](const Range& range) {
    if (!of_this(range.context)) return false;
    if (range.kind == RangeKind::kPool) range.pool->free(range.address, range.size);
    return range.kind == RangeKind::kDevice || range.kind == RangeKind::kManaged ||
           range.kind == RangeKind::kPool;
  });
  driver.pools.for_each([&](Pool& pool) {
    if (&pool.device == &device) pool.trim_to(0);
  });
  const std::scoped_lock lock(mutex);
  heap.reset();
  driver.discharge(device, charged);
  charged = 0;
}

CUresult Context::revive() {
  if (driver.lost(device)) return CUDA_ERROR_DEVICE_UNAVAILABLE;
  const std::scoped_lock lock(mutex);
  if (!destroyed) return CUDA_SUCCESS;
  if (!driver.charge(device, kContextBytes)) return CUDA_ERROR_OUT_OF_MEMORY;
  charged = kContextBytes;
  heap = std::make_shared<Heap>(driver.arena, driver.account(device));
  limits = default_limits();
  destroyed = false;
  return CUDA_SUCCESS;
}

CUresult Context::set_limit(int limit, std::uint64_t value) {
  if (limit < 0 || limit >= CU_LIMIT_MAX || value > kMostBytes) return CUDA_ERROR_INVALID_VALUE;
  const std::scoped_lock lock(mutex);
  const auto before = std::exchange(limits[static_cast<std::size_t>(limit)], value);
  const auto needed = context_bytes(*this);
  if (needed > charged && !driver.charge(device, needed - charged)) {
    limits[static_cast<std::size_t>(limit)] = before;
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  if (needed < charged) driver.discharge(device, charged - needed);
  charged = needed;
  return CUDA_SUCCESS;
}

void Context::synchronize() {
  queue.drain();
  give_back_unused(driver, device);
}

std::vector<std::shared_ptr<Context>>& context_stack() {
  static thread_local std::vector<std::shared_ptr<Context>> stack;
  return stack;
}

Context* current_context() {
  const auto& stack = context_stack();
  return stack.empty() ? nullptr : stack.back().get();
}

std::shared_ptr<Stream> find_stream(Context& context, CUstream handle) {
  if (handle == nullptr || handle == CU_STREAM_LEGACY) return context.default_stream;
  if (handle != CU_STREAM_PER_THREAD) return context.driver.streams.find(handle);
  static thread_local std::unordered_map<std::uint64_t, std::shared_ptr<Stream>> own;  // by context
  auto& stream = own[context.id];
  if (!stream) stream = std::make_shared<Stream>(context.shared_from_this(), 0, 0, context.driver.next_id());
  return stream;
}

}  // namespace drover::sim::cuda
