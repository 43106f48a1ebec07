#pragma once

// Subsets of one size in colexicographic order: by their largest element, then by the next, … So the first
// that will do is the one whose worst element is best. Values; pure.

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

namespace drover::placement::schedule {

/// Of two ascending sets of the same size.
inline bool comes_before(const std::vector<std::size_t>& a, const std::vector<std::size_t>& b) {
  return std::lexicographical_compare(a.rbegin(), a.rend(), b.rbegin(), b.rend());
}

/// The `count`-subsets of 0 … `all` − 1, one after the other, each ascending.
class Colex {
 public:
  Colex(std::size_t all, std::size_t count) : all_(all), chosen_(count), valid_(count <= all) {
    std::iota(chosen_.begin(), chosen_.end(), std::size_t{0});
  }
  explicit operator bool() const { return valid_; }
  const std::vector<std::size_t>& operator*() const { return chosen_; }
  Colex& operator++() {
    std::size_t i = 0;
    while (i + 1 < chosen_.size() && chosen_[i] + 1 == chosen_[i + 1]) ++i;
    if (chosen_.empty() || (i + 1 == chosen_.size() && chosen_[i] + 1 == all_)) {
      valid_ = false;
      return *this;
    }
    ++chosen_[i];
    std::iota(chosen_.begin(), chosen_.begin() + static_cast<std::ptrdiff_t>(i), std::size_t{0});
    return *this;
  }

 private:
  std::size_t all_;
  std::vector<std::size_t> chosen_;
  bool valid_;
};

}  // namespace drover::placement::schedule
