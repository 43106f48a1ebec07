#pragma once

// What free room is worth to the requests that are likely to come: what the policy kFragmentation goes by.
//
// Take the mix of typical requests, as many of each as the free GPUs of the cluster could hold, and ask for
// the most GPU that they can fill: a linear program over the fillings of every node. Its dual prices each
// request: what one more of it would be worth, which is less than its size where it leaves room that nobody
// can use. Under these prices a node is worth its best filling, and a placement costs what the node loses by
// it. Room that none of the coming requests could use is worth nothing. That is fragmentation as FGD (USENIX
// ATC '23) measures it, but with the weights that the whole cluster gives instead of fixed ones.
//
// Two things make it quick. Fillings are weighed by temperature (filling.h), so that the dual is smooth and
// some hundred steps along its gradient solve it. And a node's CPUs are priced apart: its worth is the least,
// over prices of a CPU, of the CPUs at that price and the fillings of its GPUs at that price. A price alone
// lets a fraction of a request lie where the whole has too few CPUs. For small requests that hardly matters;
// those for several GPUs are left out there. Deterministic.

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "placement/feasibility.h"
#include "placement/filling.h"
#include "placement/node_state.h"
#include "placement/typical.h"

namespace drover::placement {

class Outlook {
 public:
  Outlook() = default;
  explicit Outlook(const std::vector<TypicalRequest>& mix) { expect(mix); }

  /// From now on another mix: what is in both keeps its price. Weights that are not positive, and requests of
  /// several GPUs with shares or several claims, are left out. Before worth(), update() has to be called.
  void expect(const std::vector<TypicalRequest>& mix);

  /// Fits the prices to what is free on these nodes: in some hundred steps, or a few when most had prices.
  /// All nodes that worth() is asked about must be of the kinds of these.
  void update(const std::vector<const NodeState*>& nodes);

  /// In milli-GPU; 0 when the mix has no GPUs.
  double worth(const NodeState& node) const;
  /// What a node loses at least with each milli-CPU.
  double cpu_floor() const { return cpu_floor_; }

 private:
  struct Typical {
    std::shared_ptr<const Shape> shape;  ///< shared by copies
    double weight = 0;
    double reward = 0;  ///< milli-GPU; of CPU-only requests a part of what their CPUs could carry
    double price = 0;   ///< at most the reward
    bool priced = false;
    double expected = 0;
  };
  /// What the typical requests are on a device: milli of each, 0 where it is not allowed.
  using DeviceClass = std::vector<int>;
  struct Class {
    DeviceClass takes;
    std::vector<double> multiples;  ///< CPUs of the requests for several GPUs, ascending
    std::size_t first_row = 0;      ///< in worths_
  };
  /// A node's free room, by class: what worth() and the gradient look at.
  struct Part;
  struct Room;
  static constexpr std::size_t kCpuPrices = 24;
  using ByCpuPrice = std::array<double, kCpuPrices>;
  struct Split {
    std::size_t first = 0;
    std::size_t second = 0;
    double share = 1;  ///< of the demand, at the first price
    double cpus_left = 0;
  };

  bool mostly_new() const;
  int learn_class(DeviceClass takes);
  void learn_kind(const NodeKind& kind);
  void learn_demand(const std::vector<const NodeState*>& nodes);
  Room room_of(const NodeState& node) const;
  void weigh(bool for_use);
  Split split(const Room& room) const;
  std::pair<std::vector<double>, double> placed(const std::vector<Room>& rooms) const;
  void step(const std::vector<Room>& rooms, double rate);
  double cpus_used(const Room& room, std::size_t cpu_price) const;
  /// What the room is worth at each price; infinity below what CPU-only requests give.
  ByCpuPrice worths(const Room& room) const;
  void flatten(bool with_unplanned);
  /// By price of a CPU: what a part of a room is worth.
  const double* worths(const Part& part) const;
  const Filling& filling(int device_class, std::size_t cpu_price) const;

  std::vector<Typical> typical_;
  ByCpuPrice cpu_prices_{};      ///< milli-GPU per milli-CPU, ascending, from 0
  double cpu_floor_ = 0;         ///< what CPU-only requests would give for a CPU
  ByCpuPrice floored_prices_{};  ///< cpu_prices_, but at least the floor
  ByCpuPrice outbid_{};          ///< 0, or infinity where the floor and another price are above
  std::vector<Class> classes_;
  std::map<DeviceClass, int> class_numbers_;
  std::vector<std::vector<int>>
      kinds_;                      ///< [NodeKind::id][device]: into classes_; empty when it was not seen
  std::vector<Filling> fillings_;  ///< [class * cpu prices + cpu price]
  std::vector<double> worths_;     ///< the same in one table, since worth() is asked for every candidate
};

}  // namespace drover::placement
