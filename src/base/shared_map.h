#pragma once

// An ordered map and an ordered set that copies share (cow.h): a copy costs nothing, and what changes after
// it is copied in pieces of some dozen items, the items themselves only when they change. For values of which
// somebody needs what they were a moment ago: copies may live on different threads, one may not be used by
// two at once.
//
// The names are those of std::map and std::set. Unlike there, every change invalidates iterators and
// references, also those to other items: who needs what was before keeps a copy.

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <stdexcept>
#include <utility>
#include <vector>

#include "base/cow.h"

namespace drover {

/// What both have in common. `KeyOf` gives the key of an item.
template <typename Key, typename Item, typename KeyOf>
class SharedItems {
  using Chunk = std::vector<Cow<Item>>;  // never empty
  using Chunks = std::vector<Cow<Chunk>>;

 public:
  using key_type = Key;
  using value_type = Item;

  class const_iterator {
   public:
    using iterator_category = std::bidirectional_iterator_tag;
    using value_type = Item;
    using difference_type = std::ptrdiff_t;
    using pointer = const Item*;
    using reference = const Item&;

    const_iterator() = default;
    reference operator*() const { return *(*(*chunks_)[chunk_])[place_]; }
    pointer operator->() const { return &**this; }
    const_iterator& operator++() {
      if (++place_ == (*chunks_)[chunk_]->size()) *this = {chunks_, chunk_ + 1, 0};
      return *this;
    }
    const_iterator& operator--() {
      if (place_ == 0) *this = {chunks_, chunk_ - 1, (*chunks_)[chunk_ - 1]->size()};
      --place_;
      return *this;
    }
    const_iterator operator++(int) { return std::exchange(*this, std::next(*this)); }
    const_iterator operator--(int) { return std::exchange(*this, std::prev(*this)); }
    bool operator==(const const_iterator& other) const {
      return chunk_ == other.chunk_ && place_ == other.place_;
    }

   private:
    friend class SharedItems;
    const_iterator(const Chunks* chunks, std::size_t chunk, std::size_t place)
        : chunks_(chunks), chunk_(chunk), place_(place) {}

    const Chunks* chunks_ = nullptr;
    std::size_t chunk_ = 0;
    std::size_t place_ = 0;
  };
  using iterator = const_iterator;

  const_iterator begin() const { return {&chunks(), 0, 0}; }
  const_iterator end() const { return {&chunks(), chunks().size(), 0}; }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  /// The first whose key is not less.
  const_iterator lower_bound(const Key& key) const {
    const auto& all = chunks();
    const auto chunk = std::ranges::partition_point(
        all, [&](const Cow<Chunk>& each) { return KeyOf()(*each->back()) < key; });
    if (chunk == all.end()) return end();
    const auto place =
        std::ranges::partition_point(**chunk, [&](const Cow<Item>& each) { return KeyOf()(*each) < key; });
    return {&all, static_cast<std::size_t>(chunk - all.begin()),
            static_cast<std::size_t>(place - (*chunk)->begin())};
  }
  const_iterator find(const Key& key) const {
    const auto found = lower_bound(key);
    return found != end() && !(key < KeyOf()(*found)) ? found : end();
  }
  bool contains(const Key& key) const { return find(key) != end(); }

  /// How many there were: 1 or 0.
  std::size_t erase(const Key& key) {
    const auto found = find(key);
    if (found == end()) return 0;
    erase(found);
    return 1;
  }
  void erase(const_iterator at) {
    auto& all = chunks_.mutate();
    auto& chunk = all[at.chunk_].mutate();
    chunk.erase(chunk.begin() + static_cast<std::ptrdiff_t>(at.place_));
    if (chunk.empty()) all.erase(all.begin() + static_cast<std::ptrdiff_t>(at.chunk_));
    --size_;
  }

  friend bool operator==(const SharedItems& one, const SharedItems& other) {
    return one.size_ == other.size_ && std::equal(one.begin(), one.end(), other.begin());
  }

 protected:
  /// Adds it before `at`, which lower_bound() gave for its key.
  void add(const_iterator at, Item item) {
    auto& all = chunks_.mutate();
    if (all.empty()) all.emplace_back(Chunk());
    const bool last = at.chunk_ == all.size();
    const auto index = last ? all.size() - 1 : at.chunk_;
    auto& chunk = all[index].mutate();
    const auto place = last ? chunk.end() : chunk.begin() + static_cast<std::ptrdiff_t>(at.place_);
    chunk.insert(place, Cow<Item>(std::move(item)));
    ++size_;
    if (chunk.size() <= kMostInChunk) return;
    // What grows at its end stays dense.
    const auto kept = static_cast<std::ptrdiff_t>(last ? kMostInChunk : kMostInChunk / 2);
    Chunk behind(chunk.begin() + kept, chunk.end());
    chunk.erase(chunk.begin() + kept, chunk.end());
    all.insert(all.begin() + static_cast<std::ptrdiff_t>(index) + 1, Cow<Chunk>(std::move(behind)));
  }
  /// The item, to be changed or replaced.
  Cow<Item>& item(const_iterator at) { return chunks_.mutate()[at.chunk_].mutate()[at.place_]; }

 private:
  static constexpr std::size_t kMostInChunk = 64;

  const Chunks& chunks() const {
    static const Chunks none;
    return chunks_ ? *chunks_ : none;
  }

  Cow<Chunks> chunks_;
  std::size_t size_ = 0;
};

template <typename Key, typename Value>
struct KeyOfPair {
  const Key& operator()(const std::pair<Key, Value>& item) const { return item.first; }
};

template <typename Key, typename Value>
class SharedMap : public SharedItems<Key, std::pair<Key, Value>, KeyOfPair<Key, Value>> {
  using Items = SharedItems<Key, std::pair<Key, Value>, KeyOfPair<Key, Value>>;

 public:
  using mapped_type = Value;

  /// Throws std::out_of_range.
  const Value& at(const Key& key) const {
    const auto found = this->find(key);
    if (found == this->end()) throw std::out_of_range("SharedMap::at");
    return found->second;
  }
  /// False, and nothing is done, when it is there already.
  bool emplace(Key key, Value value) {
    const auto at = this->lower_bound(key);
    if (is_at(at, key)) return false;
    this->add(at, {std::move(key), std::move(value)});
    return true;
  }
  void insert_or_assign(Key key, Value value) {
    const auto at = this->lower_bound(key);
    if (is_at(at, key))
      this->item(at) = Cow<typename Items::value_type>({std::move(key), std::move(value)});
    else
      this->add(at, {std::move(key), std::move(value)});
  }
  /// The value, to be changed: a copy of it when it was shared. Made when it is not there. Valid until the
  /// next change.
  Value& edit(const Key& key) {
    if (!this->contains(key)) emplace(key, Value());
    return this->item(this->find(key)).mutate().second;
  }

 private:
  bool is_at(typename Items::const_iterator at, const Key& key) const {
    return at != this->end() && !(key < at->first);
  }
};

struct KeyItself {
  template <typename Key>
  const Key& operator()(const Key& item) const {
    return item;
  }
};

template <typename Key>
class SharedSet : public SharedItems<Key, Key, KeyItself> {
 public:
  SharedSet() = default;
  SharedSet(std::initializer_list<Key> keys) {
    for (const auto& key : keys) insert(key);
  }

  /// Whether it was not there.
  bool insert(Key key) {
    const auto at = this->lower_bound(key);
    if (at != this->end() && !(key < *at)) return false;
    this->add(at, std::move(key));
    return true;
  }
};

}  // namespace drover
