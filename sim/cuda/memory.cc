#include "sim/cuda/memory.h"

namespace drover::sim::cuda {

void Memory::add(Range range) {
  const std::scoped_lock lock(mutex_);
  const Key key{range.address, range.kind == RangeKind::kReserved};
  ranges_.insert_or_assign(key, std::move(range));
}

// Ranges of one sort do not overlap, but a reserved one may begin before the nearest and still be around.
const Range* Memory::around(std::uint64_t address, bool reserved) const {
  for (auto next = ranges_.upper_bound({address, true}); next != ranges_.begin();) {
    const auto& range = (--next)->second;
    if (next->first.second != reserved) continue;
    return address - range.address < range.size ? &range : nullptr;
  }
  return nullptr;
}

std::optional<Range> Memory::find(std::uint64_t address) const {
  const std::scoped_lock lock(mutex_);
  const auto* const range = around(address, false);
  return range == nullptr ? std::nullopt : std::optional(*range);
}

std::optional<Range> Memory::reserved(std::uint64_t address) const {
  const std::scoped_lock lock(mutex_);
  const auto* const range = around(address, true);
  return range == nullptr ? std::nullopt : std::optional(*range);
}

std::optional<Range> Memory::take(std::uint64_t address, RangeKind kind) {
  const std::scoped_lock lock(mutex_);
  const auto found = ranges_.find({address, kind == RangeKind::kReserved});
  if (found == ranges_.end() || found->second.kind != kind) return std::nullopt;
  auto range = std::move(found->second);
  ranges_.erase(found);
  return range;
}

bool Memory::holds(std::uint64_t address, std::uint64_t size) const {
  const std::scoped_lock lock(mutex_);
  while (true) {
    const auto* const range = around(address, false);
    if (range == nullptr || (range->kind == RangeKind::kMapped && range->access == 0)) return false;
    const auto here = range->size - (address - range->address);
    if (size <= here) return true;
    if (range->kind != RangeKind::kMapped) return false;
    address += here;
    size -= here;
  }
}

bool Memory::any_mapped(std::uint64_t address, std::uint64_t size) const {
  const std::scoped_lock lock(mutex_);
  if (around(address, false) != nullptr) return true;
  const auto next = ranges_.lower_bound({address, false});
  return next != ranges_.end() && !next->first.second && next->first.first - address < size;
}

}  // namespace drover::sim::cuda
