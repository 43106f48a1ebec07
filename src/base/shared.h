#pragma once

// A container that its copies share until one of them changes (cow.h): a value to whoever reads it.

#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <utility>

#include "base/cow.h"

namespace drover {

template <typename Container>
class Shared {
 public:
  using value_type = typename Container::value_type;

  Shared() = default;
  Shared(std::initializer_list<value_type> items) : Shared(Container(items)) {}
  /// A template, so that braces are never taken for two iterators.
  template <std::same_as<Container> Given>
  Shared(Given items) {
    if (!items.empty()) items_ = Cow<Container>(std::move(items));
  }

  const Container& operator*() const {
    static const Container none;
    return items_ ? *items_ : none;
  }
  const Container* operator->() const { return &**this; }
  operator const Container&() const { return **this; }

  auto begin() const { return (**this).begin(); }
  auto end() const { return (**this).end(); }
  bool empty() const { return (**this).empty(); }
  auto size() const { return (**this).size(); }
  const auto& operator[](std::size_t place) const { return (**this)[place]; }
  template <typename Key>
  const auto& at(const Key& key) const {
    return (**this).at(key);
  }

  /// To be changed: a copy of it when it was shared.
  Container& edit() { return items_.mutate(); }

  /// Whether both are one in memory.
  bool is_one_with(const Shared& other) const { return &**this == &*other; }
  friend bool operator==(const Shared& one, const Shared& other) {
    return one.is_one_with(other) || *one == *other;
  }

 private:
  Cow<Container> items_;
};

}  // namespace drover
