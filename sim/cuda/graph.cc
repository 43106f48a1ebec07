#include "sim/cuda/graph.h"

#include <algorithm>

namespace drover::sim::cuda {
namespace {

/// Memory behind the addresses of allocation nodes, which costs nothing before it is touched.
struct GraphMemory {
  GraphMemory(Driver& driver_, std::uint64_t address_, std::uint64_t size_, std::uint64_t offset_)
      : driver(driver_), address(address_), size(size_), offset(offset_) {}
  ~GraphMemory() {
    free_addresses(address, size);
    driver.arena.give_back(offset, size);
  }
  GraphMemory(const GraphMemory&) = delete;
  GraphMemory& operator=(const GraphMemory&) = delete;

  Driver& driver;
  const std::uint64_t address;
  const std::uint64_t size;
  const std::uint64_t offset;
};

bool set_used(Driver& driver, std::uint64_t address, bool used) {
  return driver.memory.change(address, RangeKind::kGraph, [&](Range& range) {
    const bool changes = range.used != used;
    range.used = used;
    return changes;
  });
}

CUresult record_step(Context& context, Stream& stream, Step step) {
  const std::scoped_lock lock(stream.mutex);
  const auto capture = stream.capture;
  if (!capture) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  const std::scoped_lock capture_lock(capture->mutex);
  const auto node = add_node(context.driver, *capture->graph, capture->tips, std::move(step));
  if (!node) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  capture->tips = {node.get()};
  return CUDA_SUCCESS;
}

}  // namespace

CUresult submit(Context& context, Stream& stream, Step step) {
  if (stream.capturing) return record_step(context, stream, std::move(step));
  if (!step.action)
    stream.last = context.queue.spin(step.spin_ns);
  else if (step.type == CU_GRAPH_NODE_TYPE_HOST || step.type == CU_GRAPH_NODE_TYPE_WAIT_EVENT)
    stream.last = context.queue.run_elsewhere(std::move(step.action));
  else
    stream.last = context.queue.run(std::move(step.action));
  return CUDA_SUCCESS;
}

std::shared_ptr<Node> add_node(Driver& driver, Graph& graph, std::vector<Node*> dependencies, Step step) {
  const std::scoped_lock lock(graph.mutex);
  for (const auto* dependency : dependencies)
    if (std::ranges::find(graph.nodes, dependency, &std::shared_ptr<Node>::get) == graph.nodes.end())
      return nullptr;
  if (step.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) {
    const auto range = driver.memory.find(step.address);
    if (range) graph.device = range->device;
  }
  auto node = std::make_shared<Node>();
  node->graph = graph.weak_from_this();
  node->dependencies = std::move(dependencies);
  node->step = std::move(step);
  graph.nodes.push_back(node);
  driver.nodes.add(node);
  return node;
}

std::uint64_t reserve_graph_memory(Context& context, std::uint64_t size) {
  auto& driver = context.driver;
  const auto whole = in_blocks(size);
  if (whole == 0 || whole > context.device.total_bytes()) return 0;
  const auto offset = driver.arena.take(whole);
  if (!offset) return 0;
  const auto address = reserve_addresses(whole, kBlock);
  if (address == 0) {
    driver.arena.give_back(*offset, whole);
    return 0;
  }
  auto memory = std::make_shared<GraphMemory>(driver, address, whole, *offset);
  if (!map_at(address, whole, driver.arena.descriptor(), *offset)) return 0;
  driver.memory.add({.address = address,
                     .size = size,
                     .kind = RangeKind::kGraph,
                     .device = &context.device,
                     .context = context.weak_from_this(),
                     .id = driver.next_id(),
                     .backing = std::move(memory),
                     .used = false});
  return address;
}

CUresult free_graph_memory(Driver& driver, std::uint64_t address) {
  const auto range = driver.memory.find(address);
  if (!range || !set_used(driver, address, false)) return CUDA_ERROR_INVALID_VALUE;
  const std::scoped_lock lock(range->device->mutex);
  auto& used = range->device->graph_used;
  used.set(used.now - std::min(used.now, in_blocks(range->size)));
  return CUDA_SUCCESS;
}

CUresult take_graph_memory(Driver& driver, GraphExec& exec) {
  constexpr unsigned long long kFreeOnLaunch = 1;
  if (exec.device == nullptr) return CUDA_SUCCESS;
  auto& device = *exec.device;
  for (const auto& step : exec.steps) {
    if (step.type != CU_GRAPH_NODE_TYPE_MEM_ALLOC) continue;
    const auto range = driver.memory.find(step.address);
    if (!range) return CUDA_ERROR_INVALID_VALUE;
    if (!range->used) continue;
    if ((exec.flags & kFreeOnLaunch) == 0) return CUDA_ERROR_INVALID_VALUE;
    free_graph_memory(driver, step.address);
  }
  const std::scoped_lock lock(device.mutex);
  auto used = device.graph_used.now;
  auto most = used;
  for (const auto& step : exec.steps) {
    if (step.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) used += step.size;
    if (step.type == CU_GRAPH_NODE_TYPE_MEM_FREE) {
      const auto range = driver.memory.find(step.address);
      used -= std::min(used, range ? in_blocks(range->size) : 0);
    }
    most = std::max(most, used);
  }
  if (most > device.graph_reserved.now) {
    if (!driver.charge(device, most - device.graph_reserved.now)) return CUDA_ERROR_OUT_OF_MEMORY;
    device.graph_reserved.set(most);
  }
  device.graph_used.set(most);
  device.graph_used.set(used);
  for (const auto& step : exec.steps) {
    if (step.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) set_used(driver, step.address, true);
    if (step.type == CU_GRAPH_NODE_TYPE_MEM_FREE) set_used(driver, step.address, false);
  }
  return CUDA_SUCCESS;
}

}  // namespace drover::sim::cuda
