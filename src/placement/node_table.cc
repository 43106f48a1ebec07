#include "placement/node_table.h"

#include <algorithm>

namespace drover::placement {
namespace {

constexpr std::size_t kShortestJournal = 1024;

}  // namespace

std::optional<int> NodeEntry::device(const std::string& uuid) const {
  const auto& devices = node->inventory.devices;
  for (int i = 0; i < kind->count(); ++i)
    if (devices[static_cast<std::size_t>(i)].uuid == uuid) return i;
  return std::nullopt;
}

std::optional<std::size_t> NodeTable::find(const std::string& name) const {
  const auto found = slots_->find(name);
  if (found == slots_->end()) return std::nullopt;
  return found->second;
}

std::size_t NodeTable::append(NodeEntry entry) {
  const auto slot = size_++;
  if (slot % kBlockSize == 0) blocks_.emplace_back(NodeBlock{}).mutate().entries.reserve(kBlockSize);
  slots_.mutate().emplace(entry.node->name, slot);
  auto& block = blocks_.back().mutate();
  block.entries.push_back(std::move(entry));
  note_change(block, slot);
  return slot;
}

void NodeTable::erase(std::size_t slot) {
  std::vector<NodeEntry> rest;
  for (std::size_t i = slot + 1; i < size_; ++i) rest.push_back(at(i));
  auto& slots = slots_.mutate();
  for (std::size_t i = slot; i < size_; ++i) slots.erase(at(i).node->name);
  blocks_.resize(slot / kBlockSize + 1);
  blocks_.back().mutate().entries.resize(slot % kBlockSize);
  if (blocks_.back()->entries.empty()) blocks_.pop_back();
  size_ = slot;
  for (auto& entry : rest) append(std::move(entry));
  journal_start_ = sequence() + 1;
  journal_.clear();
}

void NodeTable::note_change(NodeBlock& block, std::size_t slot) {
  if (journal_.size() >= std::max(kShortestJournal, size_)) {
    const auto half = journal_.size() / 2;
    journal_.erase(journal_.begin(), journal_.begin() + static_cast<std::ptrdiff_t>(half));
    journal_start_ += half;
  }
  journal_.push_back(static_cast<std::uint32_t>(slot));
  const auto place = slot % kBlockSize;
  const auto& state = block.entries[place].state;
  block.changed[place] = sequence();
  block.free_milli_cpus[place] = state.free_milli_cpus;
  block.free_memory[place] = state.free_memory;
  const auto end = static_cast<std::ptrdiff_t>(block.entries.size());
  block.most_milli_cpus =
      *std::max_element(block.free_milli_cpus.begin(), block.free_milli_cpus.begin() + end);
  block.most_memory = *std::max_element(block.free_memory.begin(), block.free_memory.begin() + end);
}

}  // namespace drover::placement
