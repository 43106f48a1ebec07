#include "sim/cuda/heap.h"

#include <bit>

namespace drover::sim::cuda {

Heap::~Heap() {
  for (const auto& [address, block] : blocks_) give_back(*block);
}

std::uint64_t Heap::allocate(std::uint64_t size) {
  if (size > kSmallest << (kKinds - 1)) {
    auto* const block = take_block(in_blocks(size));
    if (block == nullptr) return 0;
    block->kind = kKinds;
    return block->address;
  }
  const auto kind = static_cast<std::size_t>(size <= kSmallest ? 0 : std::bit_width((size - 1) / kSmallest));
  if (with_room_[kind].empty()) {
    auto* const block = take_block(kBlock);
    if (block == nullptr) return 0;
    block->kind = kind;
    for (auto piece = pieces(kind); piece-- > 0;) block->free.push_back(static_cast<std::uint16_t>(piece));
    has_room(*block);
  }
  auto& block = *with_room_[kind].back();
  const auto piece = block.free.back();
  block.free.pop_back();
  if (block.free.empty()) is_full(block);
  return block.address + piece * (kSmallest << kind);
}

void Heap::free(std::uint64_t address) {
  const auto found = blocks_.find(address / kBlock * kBlock);
  if (found == blocks_.end()) return;
  auto& block = *found->second;
  if (block.kind < kKinds) {
    if (block.free.empty()) has_room(block);
    block.free.push_back(static_cast<std::uint16_t>((address - block.address) / (kSmallest << block.kind)));
    if (block.free.size() < pieces(block.kind)) return;
    is_full(block);
  }
  give_back(block);
  blocks_.erase(found);
}

std::uint64_t Heap::offset_of(std::uint64_t address) const {
  const auto found = blocks_.find(address / kBlock * kBlock);
  return found == blocks_.end() ? 0 : found->second->offset + (address - found->second->address);
}

Heap::Block* Heap::take_block(std::uint64_t size) {
  if (size == 0 || !account_.charge(size)) return nullptr;  // rounded up to more than there is
  auto block = std::make_unique<Block>();
  block->size = size;
  const auto offset = arena_->take(size);
  if (offset) {
    block->offset = *offset;
    block->address = reserve_addresses(size, kBlock);
    if (block->address != 0 && map_at(block->address, size, arena_->descriptor(), *offset)) {
      auto* const taken = block.get();
      blocks_.emplace(taken->address, std::move(block));
      return taken;
    }
    if (block->address != 0) free_addresses(block->address, size);
    arena_->give_back(*offset, size);
  }
  account_.discharge(size);
  return nullptr;
}

void Heap::give_back(const Block& block) {
  free_addresses(block.address, block.size);
  arena_->give_back(block.offset, block.size);
  account_.discharge(block.size);
}

void Heap::has_room(Block& block) {
  block.place = with_room_[block.kind].size();
  with_room_[block.kind].push_back(&block);
}

void Heap::is_full(Block& block) {
  auto& blocks = with_room_[block.kind];
  blocks[block.place] = blocks.back();
  blocks[block.place]->place = block.place;
  blocks.pop_back();
}

}  // namespace drover::sim::cuda
