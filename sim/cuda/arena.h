#pragma once

// What stands in for the memory of GPUs: a sparse file without a name, of which pieces are mapped. So memory
// that nobody touches costs nothing, the same piece can be seen at two addresses, and another process can
// open it
// (/proc/PID/fd). Thread safe.

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

namespace drover::sim::cuda {

/// The driver hands out physical memory in pieces of this size.
inline constexpr std::uint64_t kBlock = 2 << 20;

/// No card and no host has more memory.
inline constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 46;

inline std::uint64_t in_blocks(std::uint64_t bytes) {
  return (bytes + kBlock - 1) / kBlock * kBlock;
}

class Arena {
 public:
  /// The file is made with the first piece.
  Arena() = default;
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  /// The place in the file of zeroed bytes, a multiple of kBlock; none when the system refuses.
  std::optional<std::uint64_t> take(std::uint64_t size);
  void give_back(std::uint64_t offset, std::uint64_t size);
  int descriptor() const { return descriptor_; }

 private:
  std::mutex mutex_;
  int descriptor_ = -1;
  std::uint64_t next_ = 0;
  std::map<std::uint64_t, std::vector<std::uint64_t>> free_;  ///< by size
};

/// Addresses that nothing is behind, at a multiple of `alignment`; 0 when there are none. With `wanted`,
/// there if they are free.
std::uint64_t reserve_addresses(std::uint64_t size, std::uint64_t alignment, std::uint64_t wanted = 0);
void free_addresses(std::uint64_t address, std::uint64_t size);
/// Puts a piece of a file there, or nothing again. False when the system refuses.
bool map_at(std::uint64_t address, std::uint64_t size, int descriptor, std::uint64_t offset);
bool unmap_at(std::uint64_t address, std::uint64_t size);

}  // namespace drover::sim::cuda
