#pragma once

// Random nodes and requests for property tests: small, and of all shapes. The same seed gives the same.

#include <array>
#include <random>
#include <string>

#include "placement/node.h"
#include "placement/request.h"

namespace drover::placement::testing {

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  int below(int bound) { return static_cast<int>(engine_() % static_cast<std::uint64_t>(bound)); }
  bool one_in(int n) { return below(n) == 0; }
  template <typename T, std::size_t N>
  const T& of(const std::array<T, N>& values) {
    return values[static_cast<std::size_t>(below(N))];
  }

  Node node(const std::string& name);
  Request request();
  /// Its health or its cordon; rarely its hardware.
  void change(Node& node);

 private:
  gpu::Device device(const std::string& uuid, int numa_nodes);

  std::mt19937_64 engine_;
};

}  // namespace drover::placement::testing
