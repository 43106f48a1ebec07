#pragma once

// The nodes of a cluster in their order, and which of them changed when. Copies share what does not change.

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/cow.h"
#include "placement/node_state.h"

namespace drover::placement {

struct NodeEntry {
  std::shared_ptr<const Node> node;
  std::shared_ptr<const NodeKind> kind;
  NodeState state;
  int allocations = 0;

  /// Position of a device in the kind, if the node lists it.
  std::optional<int> device(const std::string& uuid) const;
};

inline constexpr std::size_t kBlockSize = 64;

/// Neighbouring nodes; the last block may have fewer. The free amounts stand beside the entries for searches
/// that look at nothing else.
struct NodeBlock {
  std::vector<NodeEntry> entries;
  std::array<std::int64_t, kBlockSize> free_milli_cpus{};
  std::array<std::int64_t, kBlockSize> free_memory{};
  std::array<std::uint64_t, kBlockSize> changed{};  ///< sequence number of the last change
  std::int64_t most_milli_cpus = 0;
  std::int64_t most_memory = 0;
};

class NodeTable {
 public:
  std::size_t size() const { return size_; }
  std::size_t blocks() const { return blocks_.size(); }
  const NodeBlock& block(std::size_t index) const { return *blocks_[index]; }
  const NodeEntry& at(std::size_t slot) const {
    return blocks_[slot / kBlockSize]->entries[slot % kBlockSize];
  }
  std::int64_t free_milli_cpus(std::size_t slot) const {
    return blocks_[slot / kBlockSize]->free_milli_cpus[slot % kBlockSize];
  }
  std::int64_t free_memory(std::size_t slot) const {
    return blocks_[slot / kBlockSize]->free_memory[slot % kBlockSize];
  }
  std::optional<std::size_t> find(const std::string& name) const;

  /// Of an entry whose node has a new name.
  std::size_t append(NodeEntry entry);
  /// Those after it move up. Whoever remembers slots has to forget them.
  void erase(std::size_t slot);
  template <typename Change>
  void change(std::size_t slot, const Change& apply) {
    auto& block = blocks_[slot / kBlockSize].mutate();
    apply(block.entries[slot % kBlockSize]);
    note_change(block, slot);
  }

  /// Number of changes so far.
  std::uint64_t sequence() const { return journal_start_ + journal_.size(); }
  /// Calls visit(slot) once for each node that changed since the sequence number; false, without a call,
  /// when that is too long ago to be known.
  template <typename Visit>
  bool changes_since(std::uint64_t since, const Visit& visit) const {
    if (since < journal_start_) return false;
    for (auto i = since - journal_start_; i < journal_.size(); ++i) {
      const std::size_t slot = journal_[i];
      if (blocks_[slot / kBlockSize]->changed[slot % kBlockSize] == journal_start_ + i + 1) visit(slot);
    }
    return true;
  }

 private:
  void note_change(NodeBlock& block, std::size_t slot);

  std::vector<Cow<NodeBlock>> blocks_;
  Cow<std::unordered_map<std::string, std::size_t>> slots_{std::unordered_map<std::string, std::size_t>{}};
  std::size_t size_ = 0;
  std::vector<std::uint32_t> journal_;  ///< slots; the i-th is change journal_start_ + i + 1
  std::uint64_t journal_start_ = 0;
};

}  // namespace drover::placement
