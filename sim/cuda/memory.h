#pragma once

// Which addresses of this process mean what to CUDA. Thread safe.

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "gpu/cuda_types.h"

namespace drover::sim::cuda {

struct Context;
struct Device;
struct Pool;

enum class RangeKind {
  kDevice,      ///< of a context's heap
  kManaged,     ///< moves between host and GPUs by itself
  kHost,        ///< of the host, from CUDA
  kRegistered,  ///< of the host, from elsewhere
  kPool,        ///< of a pool, in the order of a stream
  kGraph,       ///< of an allocation node
  kGlobal,      ///< of a module
  kArray,       ///< behind an array, of no address that clients know
  kReserved,    ///< addresses without memory
  kMapped,      ///< memory at reserved addresses
  kImported,    ///< another process's
};

struct Range {
  std::uint64_t address = 0;
  std::uint64_t size = 0;
  RangeKind kind = RangeKind::kDevice;
  Device* device = nullptr;  ///< null: of the host
  std::weak_ptr<Context> context;
  std::shared_ptr<Pool> pool;
  unsigned int flags = 0;         ///< of host memory
  std::uint64_t id = 0;           ///< never used again
  std::shared_ptr<void> backing;  ///< the heap or the memory that is mapped
  std::uint64_t offset = 0;       ///< into mapped memory
  unsigned int access = 0;        ///< CU_MEM_ACCESS_FLAGS of mapped memory
  bool used = true;               ///< of allocation nodes: between allocation and free

  bool on_host() const { return kind == RangeKind::kHost || kind == RangeKind::kRegistered; }
};

class Memory {
 public:
  void add(Range range);
  /// The range around an address; mapped memory, and not the reserved addresses around it.
  std::optional<Range> find(std::uint64_t address) const;
  /// Changes one that begins there.
  template <typename Change>
  bool change(std::uint64_t address, RangeKind kind, Change change) {
    const std::scoped_lock lock(mutex_);
    const auto found = ranges_.find({address, kind == RangeKind::kReserved});
    if (found == ranges_.end() || found->second.kind != kind) return false;
    return change(found->second);
  }
  /// Takes out one that begins there and is of that kind.
  std::optional<Range> take(std::uint64_t address, RangeKind kind);
  /// Takes out all that a predicate chooses.
  template <typename Predicate>
  void take_if(Predicate predicate) {
    const std::scoped_lock lock(mutex_);
    std::erase_if(ranges_, [&](const auto& entry) { return predicate(entry.second); });
  }
  /// Whether `size` bytes from there on are memory, of one piece or of neighbouring mapped ones.
  bool holds(std::uint64_t address, std::uint64_t size) const;
  /// Whether mapped memory lies between.
  bool any_mapped(std::uint64_t address, std::uint64_t size) const;
  /// The addresses around, when they are reserved.
  std::optional<Range> reserved(std::uint64_t address) const;

 private:
  /// Reserved addresses stand beside what is mapped into them.
  using Key = std::pair<std::uint64_t, bool>;
  const Range* around(std::uint64_t address, bool reserved) const;

  mutable std::mutex mutex_;
  std::map<Key, Range> ranges_;
};

}  // namespace drover::sim::cuda
