#pragma once

// Graphs: work that is described first, by hand or by capturing a stream, and then launched as a whole. What
// a node does is decided when it is added.

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "sim/cuda/context.h"

namespace drover::sim::cuda {

/// What a launch, a copy or another work is to the queue.
struct Step {
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
  std::uint64_t spin_ns = 0;
  WorkQueue::Action action;   ///< null: spins
  std::uint64_t address = 0;  ///< of an allocation or a free
  std::uint64_t size = 0;     ///< of an allocation
};

struct Node {
  std::weak_ptr<Graph> graph;
  std::vector<Node*> dependencies;  ///< of the same graph
  Step step;
  std::shared_ptr<Graph> child;  ///< of a node that is a graph
};

struct Graph : std::enable_shared_from_this<Graph> {
  std::mutex mutex;
  std::vector<std::shared_ptr<Node>> nodes;  ///< in the order in which they were added
  Device* device = nullptr;                  ///< of its allocations; null when there are none
};

struct GraphExec {
  std::mutex mutex;
  std::vector<Step> steps;
  Device* device = nullptr;
  unsigned long long flags = 0;
};

/// What streams that are captured together record.
struct Capture {
  std::shared_ptr<Graph> graph;
  std::uint64_t id = 0;
  Stream* origin = nullptr;
  std::mutex mutex;
  std::vector<Node*> tips;         ///< the last node, which the next one depends on
  std::vector<CUgraphNode> shown;  ///< what was told to a client, which only has the address
  std::vector<std::shared_ptr<Stream>> joined;
};

/// Does it after all else that was given to the stream, or records it while the stream is captured.
CUresult submit(Context& context, Stream& stream, Step step);
inline CUresult submit(Context& context, Stream& stream, CUgraphNodeType type, WorkQueue::Action action) {
  return submit(context, stream, {.type = type, .spin_ns = 0, .action = std::move(action)});
}

/// Adds a node behind others of the graph; null when one of those is not of it.
std::shared_ptr<Node> add_node(Driver& driver, Graph& graph, std::vector<Node*> dependencies, Step step);

/// An allocation node's memory: addresses that are its own as long as the process lives, and memory behind
/// them from a launch until it is freed. 0 when there are no addresses.
std::uint64_t reserve_graph_memory(Context& context, std::uint64_t size);
/// Notes the end of one that a graph has allocated.
CUresult free_graph_memory(Driver& driver, std::uint64_t address);
/// Takes what the steps allocate and free, as their launch does; nothing when it does not fit.
CUresult take_graph_memory(Driver& driver, GraphExec& exec);

}  // namespace drover::sim::cuda
