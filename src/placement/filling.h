#pragma once

// All the ways in which the free part of a GPU, or several idle GPUs together, can be filled with typical
// requests, weighed instead of listed. The worth of free room is temperature · log Σ exp(value / temperature)
// over all fillings: near the value of the best one, and a little more where there are many. Unlike the best
// filling's value it has a derivative everywhere, which is how often each request is used. Pure; in
// milli-GPU.

#include <vector>

namespace drover::placement {

/// A typical request on devices of one class.
struct Filler {
  int request = 0;  ///< its number, for use()
  int gpus = 1;
  int milli = 1000;  ///< of each GPU; 1000 when gpus > 1
  double value = 0;  ///< of placing it, less the price of its CPUs
  double milli_cpus = 0;
  double rate = 1;  ///< how often it comes, relative to the others
};

class Filling {
 public:
  static constexpr int kLevels = 100;  ///< free room is counted in steps of 10 milli, rounded down
  static constexpr int kMaxIdle = 16;  ///< idle GPUs of one node that are looked at together

  /// Values of one GPU stay below 700 temperatures. With `for_use`, what use() needs is kept.
  Filling(const std::vector<Filler>& fillers, double temperature, bool for_use);

  /// Of one GPU with so much left; and the CPUs that its fillings use on average.
  double worth(int level) const { return worth_[index(level)]; }
  double cpus(int level) const { return cpus_[index(level)]; }

  /// Of so many idle GPUs on a node of a tier: it has the CPUs for so many of the requests for several GPUs,
  /// by ascending CPUs. The others cannot go there, whatever a CPU costs.
  double idle_worth(int idle, std::size_t tier) const { return temperature_ * logs_[tier][index(idle)]; }
  double idle_cpus(int idle, std::size_t tier) const { return idle_cpus_[tier][index(idle)]; }

  /// What an idle GPU loses by the next request that wants one GPU, on average over their rates, if it gets
  /// that instead of its best filling.
  double expected_loss() const;

  /// Adds to used[request] how often each is placed when there are levels[l] GPUs with so much left and
  /// idles[t][i] nodes of a tier with so many idle GPUs; of tiers that are not listed there is none.
  void use(std::vector<double> levels, const std::vector<std::vector<double>>& idles,
           std::vector<double>& used) const;

 private:
  static std::size_t index(int i) { return static_cast<std::size_t>(i); }
  void fill_shared(bool for_use);
  void fill_idle();
  double weight(const Filler& filler) const;

  double temperature_;
  std::vector<Filler> shares_, singles_, multiples_;  ///< multiples by their CPUs
  std::vector<double> worth_, cpus_;
  std::vector<double> sums_;                     ///< [level]: after slack was added, before singles
  std::vector<std::vector<double>> sums_after_;  ///< [share][level]: after each share was added
  /// [tier][idle]: what the first so many multiples add, in logarithms; and the CPUs.
  std::vector<std::vector<double>> logs_, idle_cpus_;
};

}  // namespace drover::placement
