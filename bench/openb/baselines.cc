#include "baselines.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <unordered_map>

namespace drover::bench {
namespace {

constexpr double kUnfit = -1;

struct Rated {
  double score = kUnfit;
  int gpu = -1;
};

/// GPUs that a share could come from, one of each filling; -1 for other pods.
std::vector<int> choices(const FreeNode& node, const PodShape& shape) {
  if (!shape.shares()) return {-1};
  std::vector<int> gpus;
  for (int i = 0; i < node.gpus; ++i) {
    const auto* end = node.left.begin() + i;
    if (node.left[static_cast<std::size_t>(i)] >= shape.gpu_milli &&
        std::find(node.left.begin(), end, *end) == end)
      gpus.push_back(i);
  }
  return gpus;
}

/// Takes the highest score; ties go to the first node.
class Scoring : public Policy {
 public:
  explicit Scoring(const Trace& trace) : trace_(trace), known_(trace.shapes.size()) {}

  std::optional<Place> place(const std::vector<FreeNode>& nodes, int pod) final {
    const auto& shape = trace_.shapes[static_cast<std::size_t>(pod)];
    auto& known = known_[static_cast<std::size_t>(pod)];
    const auto rate_again = [&](std::size_t i) {
      known.ratings[i] = fits(nodes[i], shape) ? rate(nodes[i], shape) : Rated{};
    };
    if (known.ratings.empty()) {
      known.ratings.resize(nodes.size());
      for (std::size_t i = 0; i < nodes.size(); ++i) rate_again(i);
    } else {
      for (auto i = known.seen; i < changes_.size(); ++i) rate_again(changes_[i]);
    }
    known.seen = changes_.size();
    const auto best = std::ranges::max_element(known.ratings, {}, &Rated::score);
    if (best == known.ratings.end() || best->score == kUnfit) return std::nullopt;
    const auto node = best - known.ratings.begin();
    changes_.push_back(static_cast<std::size_t>(node));
    return Place{static_cast<int>(node), best->gpu};
  }

 private:
  struct Known {
    std::vector<Rated> ratings;  ///< [node]
    std::size_t seen = 0;        ///< so many of the changes
  };

  /// The shape fits on the node; not negative.
  virtual Rated rate(const FreeNode& node, const PodShape& shape) = 0;

  const Trace& trace_;
  std::vector<Known> known_;          ///< [shape]
  std::vector<std::size_t> changes_;  ///< nodes, in the order in which they changed
};

class BestFit : public Scoring {
  using Scoring::Scoring;

  Rated rate(const FreeNode& node, const PodShape& shape) override {
    const auto left = 0.5 * static_cast<double>(node.milli_cpus - shape.milli_cpus) / 128'000 +
                      0.5 * static_cast<double>(node.milli() - shape.demand()) / 8'000;
    const auto gpus = choices(node, shape);
    const auto fullest = std::ranges::min_element(
        gpus, {}, [&](int gpu) { return gpu < 0 ? 0 : node.left[static_cast<std::size_t>(gpu)]; });
    return {std::max(0.0, std::floor(100 * (1 - left))), *fullest};
  }
};

class Fgd : public Scoring {
 public:
  explicit Fgd(const Trace& trace) : Scoring(trace), typical_(typical_pods(trace)) {}

 private:
  Rated rate(const FreeNode& node, const PodShape& shape) override {
    const auto before = fragmentation(node);
    Rated best;
    for (const auto gpu : choices(node, shape)) {
      auto after = node;
      take(after, shape, gpu);
      const auto score = std::floor(100 / (1 + std::exp((fragmentation(after) - before) / kGpuMilli)));
      if (score > best.score) best = {score, gpu};
    }
    return best;
  }

  double fragmentation(const FreeNode& node) {
    const auto [found, unknown] = fragmentations_.try_emplace(key_of(node), 0);
    if (!unknown) return found->second;
    double sum = 0;
    for (const auto& typical : typical_)
      sum += typical.weight * static_cast<double>(unusable(node, typical.shape));
    return found->second = sum;
  }

  /// Free milli that pods of this shape cannot use.
  static std::int64_t unusable(const FreeNode& node, const PodShape& shape) {
    if (shape.gpus == 0 || node.milli_cpus < shape.milli_cpus || !shape.allows(node.model))
      return node.milli();
    int usable = 0;
    std::int64_t rest = 0;
    for (int i = 0; i < node.gpus; ++i) {
      const auto left = node.left[static_cast<std::size_t>(i)];
      if (left >= shape.gpu_milli)
        ++usable;
      else
        rest += left;
    }
    return usable < shape.gpus ? node.milli() : rest;
  }

  static std::string key_of(const FreeNode& node) {
    auto left = node.left;
    std::ranges::sort(left);
    std::string key(reinterpret_cast<const char*>(left.data()), sizeof(left));
    key.append(reinterpret_cast<const char*>(&node.milli_cpus), sizeof(node.milli_cpus));
    key.push_back(static_cast<char>(node.model));
    return key;
  }

  std::vector<TypicalPod> typical_;
  std::unordered_map<std::string, double> fragmentations_;  ///< memory: most states come many times
};

class RandomPolicy : public Policy {
 public:
  RandomPolicy(const Trace& trace, std::uint64_t seed) : trace_(trace), random_(seed) {}

  std::optional<Place> place(const std::vector<FreeNode>& nodes, int pod) override {
    const auto& shape = trace_.shapes[static_cast<std::size_t>(pod)];
    fitting_.clear();
    for (std::size_t i = 0; i < nodes.size(); ++i)
      if (fits(nodes[i], shape)) fitting_.push_back(static_cast<int>(i));
    if (fitting_.empty()) return std::nullopt;
    const auto node = fitting_[random_() % fitting_.size()];
    const auto gpus = choices(nodes[static_cast<std::size_t>(node)], shape);
    return Place{node, gpus[random_() % gpus.size()]};
  }

 private:
  const Trace& trace_;
  std::mt19937_64 random_;
  std::vector<int> fitting_;
};

}  // namespace

std::vector<TypicalPod> typical_pods(const Trace& trace, double cover) {
  const auto frequencies = trace.frequencies();
  std::vector<TypicalPod> pods;
  for (std::size_t i = 0; i < trace.shapes.size(); ++i) {
    auto shape = trace.shapes[i];
    shape.memory_mib = 0;
    const auto known = std::ranges::find(pods, shape, &TypicalPod::shape);
    if (known == pods.end())
      pods.push_back({shape, frequencies[i]});
    else
      known->weight += frequencies[i];
  }
  std::ranges::sort(pods, [](const TypicalPod& a, const TypicalPod& b) {
    return a.weight != b.weight ? a.weight > b.weight : a.shape < b.shape;
  });
  double sum = 0;
  std::size_t count = 0;
  while (count < pods.size() && sum < cover) sum += pods[count++].weight;
  pods.resize(count);
  for (auto& pod : pods) pod.weight /= sum;
  return pods;
}

std::unique_ptr<Policy> make_random(const Trace& trace, const Arrivals&, std::uint64_t seed) {
  return std::make_unique<RandomPolicy>(trace, seed);
}
std::unique_ptr<Policy> make_best_fit(const Trace& trace, const Arrivals&, std::uint64_t) {
  return std::make_unique<BestFit>(trace);
}
std::unique_ptr<Policy> make_fgd(const Trace& trace, const Arrivals&, std::uint64_t) {
  return std::make_unique<Fgd>(trace);
}

}  // namespace drover::bench
