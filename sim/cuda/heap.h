#pragma once

// Memory of a GPU as the driver hands it out: large pieces are whole blocks of 2 MiB, small ones share blocks
// with others of their size. Every operation takes the same time, however much is there. Not thread safe.

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "sim/cuda/arena.h"

namespace drover::sim::cuda {

class Heap {
 public:
  /// Asked before each block is taken: whether there is room for so many bytes; and told when it is given
  /// back.
  struct Account {
    std::function<bool(std::uint64_t)> charge;
    std::function<void(std::uint64_t)> discharge;
  };

  Heap(Arena& arena, Account account) : arena_(&arena), account_(std::move(account)) {}
  ~Heap();
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;

  /// An address of at least `size` bytes, or 0 when there is no room.
  std::uint64_t allocate(std::uint64_t size);
  /// Frees what begins there.
  void free(std::uint64_t address);
  /// Where in the arena what begins there is.
  std::uint64_t offset_of(std::uint64_t address) const;

 private:
  struct Block {
    std::uint64_t address = 0;
    std::uint64_t size = 0;
    std::uint64_t offset = 0;         ///< in the arena
    std::size_t kind = 0;             ///< index of its pieces' size
    std::vector<std::uint16_t> free;  ///< pieces of small blocks
    std::size_t place = 0;            ///< among those with room
  };
  static constexpr std::uint64_t kSmallest = 512;
  static constexpr std::size_t kKinds = 12;  ///< up to 1 MiB

  Block* take_block(std::uint64_t size);
  void give_back(const Block& block);
  static std::size_t pieces(std::size_t kind) { return kBlock / (kSmallest << kind); }
  void has_room(Block& block);
  void is_full(Block& block);

  Arena* const arena_;
  const Account account_;
  std::unordered_map<std::uint64_t, std::unique_ptr<Block>> blocks_;  ///< by address
  std::array<std::vector<Block*>, kKinds> with_room_;
};

}  // namespace drover::sim::cuda
