#pragma once

// Random choices for properties of plans: as many as are asked for, and made shorter where they fail.

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <random>
#include <vector>

#include "base/property_steps.h"

namespace drover::placement::testing {

inline constexpr int kUsualSteps = 4'000;

/// Numbers drawn from one seed.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : engine_(seed) {}
  int in(int lo, int hi) { return std::uniform_int_distribution(lo, hi)(engine_); }  ///< both may come
  bool one_in(int n) { return in(1, n) == 1; }
  template <typename T>
  void shuffle(std::vector<T>& list) {
    std::ranges::shuffle(list, engine_);
  }

 private:
  std::mt19937_64 engine_;
};

/// Runs `property`, which returns how many plans it made, on lists of choices until there were so many.
/// RapidCheck makes the lists, and shortens those that fail; each round scrambles them anew.
template <typename Property>
void check_until(int steps, int most_choices, Property property) {
  int done = 0;
  for (std::uint64_t round = 0; done < steps; ++round) {
    const bool fine = rc::check([&] {
      const auto choices = *rc::gen::container<std::vector<std::uint64_t>>(
          rc::gen::resize(100, rc::gen::inRange<std::uint64_t>(0, 1ULL << 40)));
      std::vector<std::uint64_t> scrambled;
      for (const auto choice : choices)
        if (static_cast<int>(scrambled.size()) < most_choices)
          scrambled.push_back(choice * 0x9e3779b97f4a7c15ULL + round);
      if (done < steps) done += property(scrambled);
    });
    ASSERT_TRUE(fine);
  }
}

}  // namespace drover::placement::testing
