// Graphs as clients build, instantiate and launch them.

#include <algorithm>

#include "sim/cuda/call.h"
#include "sim/cuda/copy.h"
#include "sim/cuda/graph.h"
#include "sim/cuda/launch.h"

using namespace drover::sim::cuda;

namespace {

CUresult with_graph(CUgraph handle, auto body) {
  return with_driver([&](Driver& driver) {
    const auto graph = driver.graphs.find(handle);
    return graph ? body(driver, *graph) : CUDA_ERROR_INVALID_VALUE;
  });
}
CUresult with_node(CUgraphNode handle, auto body) {
  return with_driver([&](Driver& driver) {
    const auto node = driver.nodes.find(handle);
    return node ? body(driver, *node) : CUDA_ERROR_INVALID_VALUE;
  });
}

CUgraphNode node_handle(Node* node) {
  return Handles<Node, CUgraphNode>::to_handle(node);
}

/// Adds the node that `make(Context&, Step&)` describes.
CUresult add(CUgraphNode* out, CUgraph handle, const CUgraphNode* dependencies, size_t count, auto make) {
  return with_graph(handle, [&](Driver& driver, Graph& graph) {
    if (out == nullptr || (dependencies == nullptr && count > 0)) return CUDA_ERROR_INVALID_VALUE;
    return in_context([&](Context& context) {
      std::vector<Node*> before;
      for (size_t i = 0; i < count; ++i) before.push_back(reinterpret_cast<Node*>(dependencies[i]));
      Step step;
      if (const auto result = make(context, step); result != CUDA_SUCCESS) return result;
      const auto node = add_node(driver, graph, std::move(before), std::move(step));
      return node ? answer(out, node_handle(node.get())) : CUDA_ERROR_INVALID_VALUE;
    });
  });
}

CUresult kernel_step(Context& context, const CUDA_KERNEL_NODE_PARAMS* params, bool has_kernel, Step& step) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto function =
      params->func == nullptr && has_kernel ? reinterpret_cast<CUfunction>(params->kern) : params->func;
  return launch_step(context,
                     {function,
                      {params->gridDimX, params->gridDimY, params->gridDimZ},
                      {params->blockDimX, params->blockDimY, params->blockDimZ},
                      params->kernelParams,
                      params->extra},
                     step);
}

CUresult host_step(const CUDA_HOST_NODE_PARAMS* params, Step& step) {
  if (params == nullptr || params->fn == nullptr) return CUDA_ERROR_INVALID_VALUE;
  step = {.type = CU_GRAPH_NODE_TYPE_HOST,
          .action = [function = params->fn, data = params->userData](std::uint64_t) { function(data); }};
  return CUDA_SUCCESS;
}

CUresult allocation_step(Context& context, CUDA_MEM_ALLOC_NODE_PARAMS* params, Step& step) {
  if (params == nullptr || params->bytesize == 0) return CUDA_ERROR_INVALID_VALUE;
  if (params->poolProps.location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
      params->poolProps.allocType != CU_MEM_ALLOCATION_TYPE_PINNED)
    return CUDA_ERROR_NOT_SUPPORTED;
  if (params->poolProps.location.id != context.device.ordinal) return CUDA_ERROR_INVALID_DEVICE;
  const auto address = reserve_graph_memory(context, params->bytesize);
  if (address == 0) return CUDA_ERROR_OUT_OF_MEMORY;
  params->dptr = address;
  step = {.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC, .address = address, .size = in_blocks(params->bytesize)};
  return CUDA_SUCCESS;
}

CUresult free_step(Context& context, CUdeviceptr address, Step& step) {
  const auto range = context.driver.memory.find(address);
  if (!range || range->address != address || range->kind != RangeKind::kGraph)
    return CUDA_ERROR_INVALID_VALUE;
  step = {.type = CU_GRAPH_NODE_TYPE_MEM_FREE, .address = address};
  return CUDA_SUCCESS;
}

/// The steps of a graph, each after those that it depends on, and else in the order in which they were added.
/// False when it goes round in circles.
bool put_in_order(Graph& graph, std::vector<Step>& steps, Device*& device) {
  const std::scoped_lock lock(graph.mutex);
  if (graph.device != nullptr) device = graph.device;
  std::vector<const Node*> done;
  const auto is_done = [&](const Node* node) { return std::ranges::find(done, node) != done.end(); };
  while (done.size() < graph.nodes.size()) {
    const auto before = done.size();
    for (const auto& node : graph.nodes) {
      if (is_done(node.get()) || !std::ranges::all_of(node->dependencies, is_done)) continue;
      if (node->child) {
        if (!put_in_order(*node->child, steps, device)) return false;
      } else if (node->step.type != CU_GRAPH_NODE_TYPE_EMPTY) {
        steps.push_back(node->step);
      }
      done.push_back(node.get());
    }
    if (done.size() == before) return false;
  }
  return true;
}

CUresult instantiate(CUgraphExec* out, CUgraph handle, unsigned long long flags) {
  return with_graph(handle, [&](Driver& driver, Graph& graph) {
    if (out == nullptr || flags > 15) return CUDA_ERROR_INVALID_VALUE;
    auto exec = std::make_shared<GraphExec>();
    exec->flags = flags;
    if (!put_in_order(graph, exec->steps, exec->device)) return CUDA_ERROR_INVALID_VALUE;
    return answer(out, driver.execs.add(std::move(exec)));
  });
}

std::shared_ptr<Graph> copy_graph(Driver& driver, Graph& graph) {
  auto copy = std::make_shared<Graph>();
  const std::scoped_lock lock(graph.mutex);
  std::vector<Node*> copies;
  for (const auto& node : graph.nodes) {
    std::vector<Node*> before;
    for (const auto* dependency : node->dependencies)
      for (std::size_t i = 0; i < copies.size(); ++i)
        if (graph.nodes[i].get() == dependency) before.push_back(copies[i]);
    auto added = add_node(driver, *copy, std::move(before), node->step);
    added->child = node->child;
    copies.push_back(added.get());
  }
  copy->device = graph.device;
  return copy;
}

}  // namespace

CUresult cuGraphCreate(CUgraph* out, unsigned int flags) {
  return with_driver([&](Driver& driver) {
    if (out == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
    return answer(out, driver.graphs.add(std::make_shared<Graph>()));
  });
}
CUresult cuGraphDestroy(CUgraph handle) {
  return with_driver([&](Driver& driver) {
    const auto graph = driver.graphs.remove(handle);
    if (!graph) return CUDA_ERROR_INVALID_VALUE;
    const std::scoped_lock lock(graph->mutex);
    for (const auto& node : graph->nodes) driver.nodes.remove(node_handle(node.get()));
    return CUDA_SUCCESS;
  });
}
CUresult cuGraphClone(CUgraph* out, CUgraph handle) {
  return with_graph(handle, [&](Driver& driver, Graph& graph) {
    return out == nullptr ? CUDA_ERROR_INVALID_VALUE
                          : answer(out, driver.graphs.add(copy_graph(driver, graph)));
  });
}

CUresult cuGraphAddEmptyNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies, size_t count) {
  return add(out, graph, dependencies, count, [](Context&, Step&) { return CUDA_SUCCESS; });
}
CUresult cuGraphAddKernelNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies, size_t count,
                              const CUDA_KERNEL_NODE_PARAMS* params) {
  return add(out, graph, dependencies, count,
             [&](Context& context, Step& step) { return kernel_step(context, params, false, step); });
}
CUresult cuGraphAddKernelNode_v2(CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies,
                                 size_t count, const CUDA_KERNEL_NODE_PARAMS* params) {
  return add(out, graph, dependencies, count,
             [&](Context& context, Step& step) { return kernel_step(context, params, true, step); });
}
CUresult cuGraphAddMemcpyNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies, size_t count,
                              const CUDA_MEMCPY3D* asked, CUcontext) {
  return add(out, graph, dependencies, count, [&](Context& context, Step& step) {
    BoxCopy copy;
    const auto result =
        asked == nullptr ? CUDA_ERROR_INVALID_VALUE : check_copy(context.driver, *asked, copy);
    step = {.type = CU_GRAPH_NODE_TYPE_MEMCPY, .action = [copy](std::uint64_t) { copy.run(); }};
    return result;
  });
}
CUresult cuGraphAddMemsetNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies, size_t count,
                              const CUDA_MEMSET_NODE_PARAMS* asked, CUcontext) {
  return add(out, graph, dependencies, count, [&](Context& context, Step& step) {
    BoxFill fill;
    const auto result =
        asked == nullptr ? CUDA_ERROR_INVALID_VALUE : check_fill(context.driver, *asked, fill);
    step = {.type = CU_GRAPH_NODE_TYPE_MEMSET, .action = [fill](std::uint64_t) { fill.run(); }};
    return result;
  });
}
CUresult cuGraphAddHostNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies, size_t count,
                            const CUDA_HOST_NODE_PARAMS* params) {
  return add(out, graph, dependencies, count, [&](Context&, Step& step) { return host_step(params, step); });
}
CUresult cuGraphAddMemAllocNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies,
                                size_t count, CUDA_MEM_ALLOC_NODE_PARAMS* params) {
  return add(out, graph, dependencies, count,
             [&](Context& context, Step& step) { return allocation_step(context, params, step); });
}
CUresult cuGraphAddMemFreeNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies, size_t count,
                               CUdeviceptr address) {
  return add(out, graph, dependencies, count,
             [&](Context& context, Step& step) { return free_step(context, address, step); });
}
CUresult cuGraphAddChildGraphNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies,
                                  size_t count, CUgraph child_handle) {
  return with_graph(child_handle, [&](Driver& driver, Graph& child) {
    const auto result = add(out, graph, dependencies, count, [](Context&, Step& step) {
      step.type = CU_GRAPH_NODE_TYPE_GRAPH;
      return CUDA_SUCCESS;
    });
    if (result != CUDA_SUCCESS) return result;
    driver.nodes.find(*out)->child = copy_graph(driver, child);
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphAddNode_v2(CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies,
                           const CUgraphEdgeData*, size_t count, CUgraphNodeParams* params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (params->type == CU_GRAPH_NODE_TYPE_GRAPH)
    return cuGraphAddChildGraphNode(out, graph, dependencies, count, params->graph);
  return add(out, graph, dependencies, count, [&](Context& context, Step& step) {
    switch (params->type) {
      case CU_GRAPH_NODE_TYPE_KERNEL:
        return kernel_step(context, &params->kernel, true, step);
      case CU_GRAPH_NODE_TYPE_HOST:
        return host_step(&params->host, step);
      case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
        return allocation_step(context, &params->alloc, step);
      case CU_GRAPH_NODE_TYPE_MEM_FREE:
        return free_step(context, params->free, step);
      case CU_GRAPH_NODE_TYPE_EMPTY:
        return CUDA_SUCCESS;
      default:
        return CUDA_ERROR_NOT_SUPPORTED;
    }
  });
}
CUresult cuGraphAddNode(CUgraphNode* out, CUgraph graph, const CUgraphNode* dependencies, size_t count,
                        CUgraphNodeParams* params) {
  return cuGraphAddNode_v2(out, graph, dependencies, nullptr, count, params);
}

CUresult cuGraphAddDependencies_v2(CUgraph handle, const CUgraphNode* from, const CUgraphNode* to,
                                   const CUgraphEdgeData*, size_t count) {
  return with_graph(handle, [&](Driver& driver, Graph& graph) {
    if ((from == nullptr || to == nullptr) && count > 0) return CUDA_ERROR_INVALID_VALUE;
    const std::scoped_lock lock(graph.mutex);
    for (size_t i = 0; i < count; ++i) {
      const auto before = driver.nodes.find(from[i]);
      const auto after = driver.nodes.find(to[i]);
      if (!before || !after || before->graph.lock().get() != &graph || after->graph.lock().get() != &graph)
        return CUDA_ERROR_INVALID_VALUE;
      after->dependencies.push_back(before.get());
    }
    return CUDA_SUCCESS;
  });
}
CUresult cuGraphAddDependencies(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to, size_t count) {
  return cuGraphAddDependencies_v2(graph, from, to, nullptr, count);
}

CUresult cuGraphGetNodes(CUgraph handle, CUgraphNode* nodes, size_t* count) {
  return with_graph(handle, [&](Driver&, Graph& graph) {
    if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const std::scoped_lock lock(graph.mutex);
    for (size_t i = 0; nodes != nullptr && i < *count; ++i)
      nodes[i] = i < graph.nodes.size() ? node_handle(graph.nodes[i].get()) : nullptr;
    *count = nodes == nullptr ? graph.nodes.size() : std::min(*count, graph.nodes.size());
    return CUDA_SUCCESS;
  });
}
CUresult cuGraphNodeGetType(CUgraphNode handle, CUgraphNodeType* type) {
  return with_node(handle, [&](Driver&, Node& node) { return answer(type, node.step.type); });
}
CUresult cuGraphMemAllocNodeGetParams(CUgraphNode handle, CUDA_MEM_ALLOC_NODE_PARAMS* params) {
  return with_node(handle, [&](Driver& driver, Node& node) {
    const auto range = driver.memory.find(node.step.address);
    if (node.step.type != CU_GRAPH_NODE_TYPE_MEM_ALLOC || !range) return CUDA_ERROR_INVALID_VALUE;
    CUDA_MEM_ALLOC_NODE_PARAMS told{};
    told.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    told.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, range->device->ordinal};
    told.bytesize = range->size;
    told.dptr = range->address;
    return answer(params, told);
  });
}
CUresult cuGraphMemFreeNodeGetParams(CUgraphNode handle, CUdeviceptr* address) {
  return with_node(handle, [&](Driver&, Node& node) {
    return node.step.type == CU_GRAPH_NODE_TYPE_MEM_FREE ? answer(address, node.step.address)
                                                         : CUDA_ERROR_INVALID_VALUE;
  });
}

CUresult cuGraphInstantiate_v2(CUgraphExec* out, CUgraph graph, CUgraphNode*, char*, size_t) {
  return instantiate(out, graph, 0);
}
CUresult cuGraphInstantiateWithFlags(CUgraphExec* out, CUgraph graph, unsigned long long flags) {
  return instantiate(out, graph, flags);
}
CUresult cuGraphInstantiateWithParams(CUgraphExec* out, CUgraph graph,
                                      CUDA_GRAPH_INSTANTIATE_PARAMS* params) {
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto result = instantiate(out, graph, params->flags);
  params->hErrNode_out = nullptr;
  params->result_out = result == CUDA_SUCCESS ? 0 : 1;
  return result;
}
CUresult cuGraphInstantiateWithParams_ptsz(CUgraphExec* out, CUgraph graph,
                                           CUDA_GRAPH_INSTANTIATE_PARAMS* params) {
  return cuGraphInstantiateWithParams(out, graph, params);
}
CUresult cuGraphExecDestroy(CUgraphExec handle) {
  return with_driver(
      [&](Driver& driver) { return driver.execs.remove(handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE; });
}
CUresult cuGraphExecUpdate_v2(CUgraphExec handle, CUgraph graph_handle, CUgraphExecUpdateResultInfo* info) {
  constexpr auto kUpdateFailure = static_cast<CUresult>(910);
  return with_graph(graph_handle, [&](Driver& driver, Graph& graph) {
    const auto exec = driver.execs.find(handle);
    if (!exec || info == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::vector<Step> steps;
    Device* device = nullptr;
    const bool ordered = put_in_order(graph, steps, device);
    const std::scoped_lock lock(exec->mutex);
    const bool same = ordered && std::ranges::equal(steps, exec->steps, {}, &Step::type, &Step::type);
    *info = {same ? 0 : 1, nullptr, nullptr};
    if (!same) return kUpdateFailure;
    exec->steps = std::move(steps);
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphUpload(CUgraphExec handle, CUstream stream_handle) {
  return on_stream(stream_handle, [&](Context& context, Stream&) {
    return context.driver.execs.find(handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}
CUresult cuGraphLaunch(CUgraphExec handle, CUstream stream_handle) {
  return on_stream(stream_handle, [&](Context& context, Stream& stream) {
    const auto exec = context.driver.execs.find(handle);
    if (!exec) return CUDA_ERROR_INVALID_VALUE;
    const std::scoped_lock lock(exec->mutex);
    if (const auto result = take_graph_memory(context.driver, *exec); result != CUDA_SUCCESS) return result;
    for (const auto& step : exec->steps)
      if (const auto result = submit(context, stream, step); result != CUDA_SUCCESS) return result;
    return CUDA_SUCCESS;
  });
}
DROVER_PER_THREAD(cuGraphUpload, (CUgraphExec exec, CUstream stream), exec, per_thread(stream))
DROVER_PER_THREAD(cuGraphLaunch, (CUgraphExec exec, CUstream stream), exec, per_thread(stream))
