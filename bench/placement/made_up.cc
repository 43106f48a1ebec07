#include <fmt/format.h>

#include <random>

#include "topologies.h"

namespace drover::bench {
namespace {

using gpu::PcieLevel;

class Maker {
 public:
  Maker(std::string name, int gpus) {
    const auto size = static_cast<std::size_t>(gpus);
    made_.name = std::move(name);
    made_.links.assign(size, std::vector<gpu::Link>(size));
    made_.numa.resize(size);
    for (std::size_t i = 0; i < size; ++i) made_.links[i][i].pcie = PcieLevel::kSameDevice;
  }

  /// nvlinks(a, b) for every pair a < b.
  template <typename NvLinks>
  Maker& nvlinks(const NvLinks& nvlinks) {
    each_pair([&](int a, int b, gpu::Link& link) { link.nvlinks = nvlinks(a, b); });
    return *this;
  }
  template <typename Level>
  Maker& pcie(const Level& level) {
    each_pair([&](int a, int b, gpu::Link& link) { link.pcie = level(a, b); });
    return *this;
  }
  template <typename Numa>
  Maker& numa(const Numa& numa) {
    for (std::size_t i = 0; i < made_.numa.size(); ++i) made_.numa[i] = numa(static_cast<int>(i));
    return *this;
  }
  operator Topology() const { return made_; }  // NOLINT: the end of a sentence that builds one

 private:
  template <typename Set>
  void each_pair(const Set& set) {
    for (std::size_t b = 0; b < made_.links.size(); ++b)
      for (std::size_t a = 0; a < b; ++a) {
        set(static_cast<int>(a), static_cast<int>(b), made_.links[a][b]);
        made_.links[b][a] = made_.links[a][b];
      }
  }

  Topology made_;
};

int socket_of_two(int gpu, int gpus) {
  return gpu < gpus / 2 ? 0 : 1;
}

/// Switches of two, host bridges of four, sockets of eight: what servers without NVLink look like.
PcieLevel tree_level(int a, int b) {
  if (a / 2 == b / 2) return PcieLevel::kSwitch;
  if (a / 4 == b / 4) return PcieLevel::kHostBridge;
  return a / 8 == b / 8 ? PcieLevel::kSameNuma : PcieLevel::kAcross;
}

int steps_on_ring(int a, int b, int gpus) {
  return std::min(b - a, gpus - (b - a));
}

void add_random(std::vector<Topology>& all, std::mt19937_64& random, int gpus) {
  // The library's distributions differ between standard libraries; remainders do not.
  const auto below = [&](int limit) { return static_cast<int>(random() % static_cast<unsigned>(limit)); };
  const auto any_socket = [&](int) { return below(2); };
  for (const int percent : {30, 60, 90})
    all.push_back(Maker(fmt::format("random{}_{}percent", gpus, percent), gpus)
                      .nvlinks([&](int, int) { return below(100) < percent ? 1 : 0; })
                      .numa(any_socket));
  all.push_back(Maker(fmt::format("random{}_weights", gpus), gpus)
                    .nvlinks([&](int, int) { return below(7); })
                    .numa(any_socket));
  all.push_back(Maker(fmt::format("random{}_all_differ", gpus), gpus)
                    .nvlinks([&](int, int) { return below(100'000); })
                    .pcie([&](int, int) { return static_cast<PcieLevel>(1 + below(6)); })
                    .numa(any_socket));
  all.push_back(Maker(fmt::format("random{}_pcie", gpus), gpus)
                    .pcie([&](int, int) { return static_cast<PcieLevel>(1 + below(6)); })
                    .numa([&](int) { return below(4); }));
}

void add_regular(std::vector<Topology>& all, int gpus) {
  const auto sockets = [=](int gpu) { return socket_of_two(gpu, gpus); };
  const auto add = [&](const char* name, const auto& nvlinks, const auto& numa) {
    all.push_back(Maker(fmt::format("{}{}", name, gpus), gpus).nvlinks(nvlinks).numa(numa));
  };
  add("switched", [](int, int) { return 6; }, sockets);
  add("switched_numa_pairs", [](int, int) { return 6; }, [](int gpu) { return gpu / 2; });
  add("all_but_one", [](int a, int b) { return a == 0 && b == 1 ? 5 : 6; }, [](int gpu) { return gpu / 2; });
  add("ring", [=](int a, int b) { return steps_on_ring(a, b, gpus) == 1 ? 2 : 0; }, sockets);
  add("ring_of_neighbours", [=](int a, int b) { return steps_on_ring(a, b, gpus) <= 2 ? 1 : 0; }, sockets);
  add(
      "hypercube", [](int a, int b) { return std::popcount(static_cast<unsigned>(a ^ b)) == 1 ? 1 : 0; },
      sockets);
  // Every NVLink leads to the other socket, and none stays on its own.
  add("disagreeing_pairs", [=](int a, int b) { return b - a == gpus / 2 ? 4 : 0; }, sockets);
  add("disagreeing_halves", [=](int a, int b) { return a % 2 == b % 2 ? 2 : 1; }, sockets);
  add(
      "all_but_neighbours", [](int a, int b) { return a / 2 == b / 2 ? 0 : 2; },
      [](int gpu) { return gpu % 2; });
  // Chains of four whose neighbours lack a link: much ties, and hardly two GPUs are alike.
  add("all_but_chains", [](int a, int b) { return a / 4 == b / 4 && b - a == 1 ? 1 : 2; }, sockets);
  all.push_back(
      Maker(fmt::format("pcie_tree{}", gpus), gpus).pcie(tree_level).numa([](int gpu) { return gpu / 8; }));
  all.push_back(Maker(fmt::format("switched_pcie_tree{}", gpus), gpus)
                    .nvlinks([](int, int) { return 12; })
                    .pcie(tree_level)
                    .numa([](int gpu) { return gpu / 2; }));
}

/// Two boards like that of a DGX-1, each GPU joined to its counterpart on the other.
Topology two_boards() {
  constexpr int kBoard[8][8] = {{0, 1, 1, 2, 2, 0, 0, 0}, {1, 0, 2, 1, 0, 2, 0, 0}, {1, 2, 0, 2, 0, 0, 1, 0},
                                {2, 1, 2, 0, 0, 0, 0, 1}, {2, 0, 0, 0, 0, 1, 1, 2}, {0, 2, 0, 0, 1, 0, 2, 1},
                                {0, 0, 1, 0, 1, 2, 0, 2}, {0, 0, 0, 1, 2, 1, 2, 0}};
  return Maker("two_boards16", 16)
      .nvlinks([&](int a, int b) { return a / 8 == b / 8 ? kBoard[a % 8][b % 8]
                                          : b - a == 8   ? 1
                                                         : 0; })
      .numa([](int gpu) { return gpu / 4; });
}

}  // namespace

std::vector<Topology> made_up_topologies(std::uint64_t seed) {
  std::vector<Topology> all;
  std::mt19937_64 random(seed);
  for (const int gpus : {8, 16}) {
    add_regular(all, gpus);
    add_random(all, random, gpus);
  }
  all.push_back(two_boards());
  for (const int gpus : {24, 64}) {  // more than tables hold
    all.push_back(
        Maker(fmt::format("switched{}", gpus), gpus).nvlinks([](int, int) { return 18; }).numa([](int gpu) {
          return gpu / 8;
        }));
    all.push_back(Maker(fmt::format("boards{}", gpus), gpus)
                      .nvlinks([](int a, int b) { return a / 4 == b / 4   ? 4
                                                         : a % 4 == b % 4 ? 1
                                                                          : 0; })
                      .numa([](int gpu) { return gpu / 8; }));
    all.push_back(Maker(fmt::format("random{}_weights", gpus), gpus)
                      .nvlinks([&](int, int) { return static_cast<int>(random() % 7); })
                      .numa([](int gpu) { return gpu / 8; }));
  }
  return all;
}

}  // namespace drover::bench
