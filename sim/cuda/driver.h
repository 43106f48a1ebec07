#pragma once

// The state behind the C interface of simulated CUDA: the GPUs that this process sees, their contexts, and
// what those hold. There is one Driver a process, from cuInit() on, and it is never destroyed, as the
// process's other threads may be inside. Thread safe; a thread's current contexts are its own.

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "gpu/cuda_abi.h"
#include "sim/cuda/handles.h"
#include "sim/cuda/heap.h"
#include "sim/cuda/memory.h"
#include "sim/cuda/work_queue.h"
#include "sim/live_process.h"
#include "sim/machine.h"

namespace drover::sim::cuda {

struct Array;
struct Context;
struct Event;
struct Function;
struct Graph;
struct GraphExec;
struct Library;
struct Mipmap;
struct Module;
struct Node;
struct Pool;
struct Stream;

/// What every context takes of its GPU's memory.
inline constexpr std::uint64_t kContextBytes = 300 << 20;

/// Bytes in use, and the most that ever were since somebody asked to forget.
struct Gauge {
  std::uint64_t now = 0;
  std::uint64_t high = 0;

  void set(std::uint64_t bytes) {
    now = bytes;
    high = std::max(high, bytes);
  }
};

struct Device {
  CUdevice ordinal = 0;
  std::size_t position = 0;  ///< in the profile
  const Gpu* gpu = nullptr;

  std::mutex mutex;  ///< of what follows
  std::shared_ptr<Context> primary;
  unsigned int primary_retained = 0;
  unsigned int primary_flags = 0;
  std::shared_ptr<Pool> default_pool;
  std::shared_ptr<Pool> current_pool;
  Gauge graph_used;
  Gauge graph_reserved;

  std::uint64_t total_bytes() const { return (gpu->model.memory_mib - gpu->model.reserved_mib) << 20; }
};

class Driver {
 public:
  static CUresult init();
  /// Null before cuInit(), and in a child of fork().
  static Driver* get();
  /// A child of fork(), of a process that had called cuInit().
  static bool forked();
  /// 1000 * major + 10 * minor, of the profile; also before cuInit().
  static int version();

  const Machine& machine() const { return *machine_; }
  LiveProcess& live() { return *live_; }
  const std::vector<std::unique_ptr<Device>>& devices() const { return devices_; }
  Device* device(CUdevice ordinal) const;
  bool lost(const Device& device) const;

  /// Takes memory of a GPU, or says that there is none.
  bool charge(const Device& device, std::uint64_t bytes);
  void discharge(const Device& device, std::uint64_t bytes);
  std::uint64_t free_bytes(const Device& device);
  /// All of it, or what the driver lets this process's control group have.
  std::uint64_t seen_bytes(const Device& device) const;
  Heap::Account account(const Device& device);
  std::uint64_t next_id() { return ++ids_; }

  Arena arena;
  Memory memory;
  Handles<Context, CUcontext> contexts;
  Handles<Stream, CUstream> streams;
  Handles<Event, CUevent> events;
  Handles<Module, CUmodule> modules;
  Handles<Library, CUlibrary> libraries;
  Handles<Function, CUfunction> functions;  ///< and kernels, under the same handles
  Handles<Pool, CUmemoryPool> pools;
  Handles<Array, CUarray> arrays;
  Handles<Mipmap, CUmipmappedArray> mipmaps;
  Handles<Graph, CUgraph> graphs;
  Handles<Node, CUgraphNode> nodes;
  Handles<GraphExec, CUgraphExec> execs;

 private:
  Driver(std::shared_ptr<const Machine> machine, std::unique_ptr<LiveProcess> live);
  std::uint64_t room(const Device& device) const;

  const std::shared_ptr<const Machine> machine_;
  const std::unique_ptr<LiveProcess> live_;
  std::vector<std::unique_ptr<Device>> devices_;
  std::atomic<std::uint64_t> ids_{0};
};

}  // namespace drover::sim::cuda
