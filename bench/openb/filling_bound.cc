#include "filling_bound.h"

#include <algorithm>
#include <coin/ClpSimplex.hpp>
#include <limits>
#include <map>
#include <numeric>
#include <queue>

#include "node_fillings.h"

namespace drover::bench {
namespace {

constexpr double kGap = 2e-5;         // of the capacity: as exact as a linear program is solved
constexpr double kPenalty = 200'000;  // milli-GPU, for a pod that must be placed and is not
constexpr double kSmoothing = 0.7;    // Wentges' smoothing of dual values, against their swinging
constexpr int kMaxRounds = 2000;
constexpr int kPrograms = 40;         // linear programs for one shape's bound without refusal
constexpr std::size_t kFinest = 400;  // parts of all arrivals
constexpr std::size_t kBlockers = 2;  // shapes that are tried

/// How many pods of each group must and may be placed.
struct Demand {
  std::vector<double> least, most;
};

/// The linear program. Columns stay from one solution to the next.
class Program {
 public:
  explicit Program(const Trace& trace) : fillings_(trace) {
    lp_.setLogLevel(0);
    lp_.setOptimizationDirection(-1);
    lp_.resize(static_cast<int>(groups() + kinds()), 0);
    for (std::size_t k = 0; k < kinds(); ++k)
      lp_.setRowBounds(static_cast<int>(groups() + k), -COIN_DBL_MAX, fillings_.nodes()[k].count);
    for (std::size_t g = 0; g < groups(); ++g) add_column({{static_cast<int>(g), 1.0}}, -kPenalty);
    capacity_ = static_cast<double>(trace.capacity());
  }

  const NodeFillings& fillings() const { return fillings_; }

  /// At least the largest demand that can be placed, in milli-GPU.
  double solve(const Demand& demand) {
    for (std::size_t g = 0; g < groups(); ++g)
      lp_.setRowBounds(static_cast<int>(g), demand.least[g] > 0 ? demand.least[g] : -COIN_DBL_MAX,
                       demand.most[g]);
    auto bound = std::numeric_limits<double>::infinity();
    std::vector<double> best(groups(), 0);
    lp_.dual();
    for (int round = 0, misses = 0; round < kMaxRounds && misses < 2; ++round) {
      const auto* duals = lp_.dualRowSolution();
      auto prices = best;
      // A round that found nothing new under smoothed prices is repeated under those of the program.
      const auto smoothing = round == 0 || misses > 0 ? 0 : kSmoothing;
      for (std::size_t g = 0; g < groups(); ++g) prices[g] = smoothing * best[g] + (1 - smoothing) * duals[g];
      const auto [value, found] = price(demand, prices, duals);
      if (value < bound) {
        bound = value;
        best = prices;
      }
      misses = found ? 0 : misses + 1;
      if (bound - lp_.objectiveValue() < kGap * capacity_) break;
      lp_.primal(1);
    }
    return bound;
  }

  /// Pods of each group in the last solution.
  std::vector<double> placed() const {
    const auto* rows = lp_.primalRowSolution();
    return {rows, rows + groups()};
  }

 private:
  std::size_t groups() const { return fillings_.pods().size(); }
  std::size_t kinds() const { return fillings_.nodes().size(); }

  void add_column(const std::map<int, double>& entries, double value) {
    std::vector<int> rows;
    std::vector<double> amounts;
    for (const auto& [row, amount] : entries) {
      rows.push_back(row);
      amounts.push_back(amount);
    }
    lp_.addColumn(static_cast<int>(rows.size()), rows.data(), amounts.data(), 0, COIN_DBL_MAX, value);
  }

  /// The bound that follows from these prices of pods, and whether a new filling improves the program.
  std::pair<double, bool> price(const Demand& demand, const std::vector<double>& prices,
                                const double* duals) {
    const auto& pods = fillings_.pods();
    std::vector<double> rewards(groups());
    double bound = 0;
    for (std::size_t g = 0; g < groups(); ++g) {
      rewards[g] = pods[g].demand - prices[g];
      bound += prices[g] * (prices[g] >= 0 ? demand.most[g] : demand.least[g]);
    }
    const std::vector<double> kind_duals(duals + groups(), duals + groups() + kinds());
    const std::vector<double> pod_duals(duals, duals + groups());
    bool found = false;
    const auto best = fillings_.best(rewards);
    for (std::size_t k = 0; k < kinds(); ++k) {
      bound += best[k].reward * fillings_.nodes()[k].count;
      double value = 0, gain = -kind_duals[k];
      std::map<int, double> entries{{static_cast<int>(groups() + k), 1.0}};
      for (const auto pod : best[k].pods) {
        const auto g = static_cast<std::size_t>(pod);
        value += pods[g].demand;
        gain += pods[g].demand - pod_duals[g];
        entries[pod] += 1;
      }
      if (gain <= 1e-6) continue;
      add_column(entries, value);
      found = true;
    }
    return {bound, found};
  }

  NodeFillings fillings_;
  ClpSimplex lp_;
  double capacity_ = 0;
};

/// How often each shape has come after so many pods, and what of it counts for the mean over a level.
class Counts {
 public:
  Counts(const Trace& trace, const Arrivals& arrivals, int percent) {
    std::vector<double> count(trace.shapes.size(), 0);
    so_far_.push_back(count);
    std::int64_t offered = 0;
    for (const auto pod : arrivals.pods) {
      const auto shape = static_cast<std::size_t>(pod);
      offered += trace.shapes[shape].demand();
      ++count[shape];
      so_far_.push_back(count);
      if (at_level(offered, trace.capacity(), percent)) level_.push_back(so_far_.size() - 1);
    }
  }

  bool empty() const { return level_.empty(); }
  /// After as many pods as have come at the end of the level.
  std::size_t end() const { return level_.back(); }
  double at_end(std::size_t shape) const { return so_far_[end()][shape]; }
  /// The mean, over the level, of those that came until then and among the first `time` pods.
  double mean(std::size_t shape, std::size_t time) const {
    double sum = 0;
    for (const auto now : level_) sum += so_far_[std::min(now, time)][shape];
    return sum / static_cast<double>(level_.size());
  }

 private:
  std::vector<std::vector<double>> so_far_;  ///< [pods that came][shape]
  std::vector<std::size_t> level_;           ///< numbers of pods after which the allocation is looked at
};

bool needs_as_much(const PodShape& a, const PodShape& b) {
  if (a.milli_cpus < b.milli_cpus || a.memory_mib < b.memory_mib) return false;
  if (b.gpus == 0) return true;
  const auto no_more_models = b.models == 0 || (a.models != 0 && (a.models & ~b.models) == 0);
  return a.gpus >= b.gpus && a.gpu_milli >= b.gpu_milli && no_more_models;
}

/// The first pod of the blocking shape is dropped among the pods after `after`, up to `until`.
struct Interval {
  std::size_t after = 0, until = 0;
  double bound = 0;

  bool operator<(const Interval& other) const { return bound < other.bound; }
};

}  // namespace

struct FillingBound::Impl {
  explicit Impl(const Trace& given) : trace(given), program(given) {}

  Demand plain_demand(const Counts& counts) const {
    Demand demand = no_demand();
    for (std::size_t s = 0; s < trace.shapes.size(); ++s)
      demand.most[group(s)] += counts.mean(s, counts.end());
    return demand;
  }

  Demand demand_in(const Counts& counts, std::size_t blocker, const Interval& interval) const {
    Demand demand = no_demand();
    for (std::size_t s = 0; s < trace.shapes.size(); ++s) {
      const auto blocked = needs_as_much(trace.shapes[s], trace.shapes[blocker]);
      demand.most[group(s)] += counts.mean(s, blocked ? interval.until : counts.end());
    }
    demand.least[group(blocker)] = counts.mean(blocker, interval.after);
    return demand;
  }

  /// Shapes of which the plain bound leaves out the most.
  std::vector<std::size_t> blockers(const Counts& counts, const Demand& demand) const {
    const auto placed = program.placed();
    std::vector<std::pair<double, std::size_t>> left_out;
    for (std::size_t s = 0; s < trace.shapes.size(); ++s) {
      const auto g = group(s);
      const auto& shape = trace.shapes[s];
      const auto part = demand.most[g] > 0 ? 1 - std::max(0.0, placed[g]) / demand.most[g] : 0;
      left_out.emplace_back(part * static_cast<double>(shape.demand()) * counts.at_end(s), s);
    }
    std::ranges::sort(left_out, std::greater<>());
    std::vector<std::size_t> shapes;
    for (const auto& [amount, s] : left_out)
      if (amount > 0 && shapes.size() < kBlockers) shapes.push_back(s);
    return shapes;
  }

  /// Halves the interval of the largest bound again and again. A bound wherever it stops.
  double without_refusal(const Counts& counts, std::size_t blocker, double plain) {
    std::priority_queue<Interval> open;
    open.push({0, counts.end(), plain});
    for (int i = 0; i + 2 <= kPrograms; i += 2) {
      const auto whole = open.top();
      if (whole.until - whole.after < counts.end() / kFinest) break;
      open.pop();
      const auto middle = (whole.after + whole.until) / 2;
      for (Interval half : {Interval{whole.after, middle}, Interval{middle, whole.until}}) {
        half.bound = std::min(whole.bound, program.solve(demand_in(counts, blocker, half)));
        open.push(half);
      }
    }
    return open.top().bound;
  }

  Demand no_demand() const {
    const auto groups = program.fillings().pods().size();
    return {std::vector<double>(groups, 0), std::vector<double>(groups, 0)};
  }
  std::size_t group(std::size_t shape) const {
    return static_cast<std::size_t>(program.fillings().group_of(static_cast<int>(shape)));
  }

  const Trace& trace;
  Program program;
};

FillingBound::FillingBound(const Trace& trace) : impl_(std::make_unique<Impl>(trace)) {}
FillingBound::~FillingBound() = default;
FillingBound::FillingBound(FillingBound&&) noexcept = default;

Bounds FillingBound::bounds(const Arrivals& arrivals, int percent) {
  const Counts counts(impl_->trace, arrivals, percent);
  if (counts.empty()) return {};
  const auto demand = impl_->plain_demand(counts);
  const auto plain = impl_->program.solve(demand);
  auto tight = plain;
  for (const auto blocker : impl_->blockers(counts, demand))
    tight = std::min(tight, impl_->without_refusal(counts, blocker, plain));
  const auto percent_of = 100.0 / static_cast<double>(impl_->trace.capacity());
  return {plain * percent_of, tight * percent_of};
}

}  // namespace drover::bench
