#include "made_up.h"

#include <algorithm>
#include <array>
#include <random>
#include <set>

namespace drover::bench {
namespace {

constexpr int kShapes = 60;

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_(seed) {}

  /// 0 up to, not including, `end`.
  int below(int end) { return static_cast<int>(random_() % static_cast<std::uint64_t>(end)); }
  bool percent(int chance) { return below(100) < chance; }
  template <typename T, std::size_t N>
  T one_of(const std::array<T, N>& values) {
    return values[random_() % N];
  }

 private:
  std::mt19937_64 random_;
};

/// Of a hundred pods; the rest wants one GPU.
struct Mix {
  int cpu_only, shares, multiples, constrained;
};

PodShape draw_shape(Draw& draw, const Mix& mix, const Trace& like) {
  PodShape shape;
  const auto kind = draw.below(100);
  shape.milli_cpus = draw.one_of(std::array{2'000, 4'000, 6'000, 8'000, 10'000, 11'500, 12'000, 16'000});
  if (kind < mix.cpu_only) {
    shape.milli_cpus = draw.one_of(std::array{4'000, 8'000, 16'000, 24'000, 32'000});
  } else if (kind < mix.cpu_only + mix.shares) {
    shape.gpus = 1;
    shape.gpu_milli = 50 + 10 * draw.below(91);
  } else if (kind < mix.cpu_only + mix.shares + mix.multiples) {
    shape.gpus = draw.one_of(std::array{2, 4, 8});
    shape.gpu_milli = kGpuMilli;
    shape.milli_cpus = shape.gpus * draw.one_of(std::array{4'000, 8'000, 11'000});
  } else {
    shape.gpus = 1;
    shape.gpu_milli = kGpuMilli;
  }
  shape.memory_mib = shape.milli_cpus / 1'000 * draw.one_of(std::array{1'024, 2'048, 4'096});
  if (shape.gpus > 0 && draw.percent(mix.constrained))
    shape.models =
        std::uint32_t{1}
        << like.nodes[static_cast<std::size_t>(draw.below(static_cast<int>(like.nodes.size())))].model;
  return shape;
}

}  // namespace

Trace make_up(const Trace& like, std::uint64_t number) {
  Draw draw(number);
  const Mix mix{draw.below(30), 20 + draw.below(40), draw.below(4), draw.percent(50) ? draw.below(40) : 0};
  std::set<PodShape> shapes;
  while (shapes.size() < kShapes) shapes.insert(draw_shape(draw, mix, like));
  Trace trace{
      .nodes = like.nodes, .models = like.models, .shapes = {shapes.begin(), shapes.end()}, .pods = {}};
  // Few shapes are frequent and many are rare, in no order of size.
  std::vector<int> ranks(kShapes);
  for (int i = 0; i < kShapes; ++i) ranks[static_cast<std::size_t>(i)] = i;
  for (int i = kShapes; i > 1; --i)
    std::swap(ranks[static_cast<std::size_t>(i - 1)], ranks[static_cast<std::size_t>(draw.below(i))]);
  for (std::size_t i = 0; i < like.pods.size(); ++i) {
    const auto rank = std::min(draw.below(kShapes), draw.below(kShapes));
    trace.pods.push_back(ranks[static_cast<std::size_t>(std::min(rank, draw.below(kShapes)))]);
  }
  return trace;
}

Trace with_multiples(const Trace& like, int percent, std::uint64_t number) {
  Draw draw(number);
  auto trace = like;
  std::vector<int> multiples;
  std::int64_t demand = 0;
  std::int64_t of_multiples = 0;
  const auto shape_of = [&](int pod) { return like.shapes[static_cast<std::size_t>(pod)]; };
  const auto add = [&](int pod, std::int64_t& sum) { sum += shape_of(pod).demand(); };
  for (const auto pod : like.pods) {
    add(pod, demand);
    if (shape_of(pod).gpus <= 1) continue;
    add(pod, of_multiples);
    multiples.push_back(pod);
  }
  while (!multiples.empty() && of_multiples * 100 < demand * percent) {
    const auto clone = multiples[static_cast<std::size_t>(draw.below(static_cast<int>(multiples.size())))];
    add(clone, demand);
    add(clone, of_multiples);
    trace.pods.push_back(clone);
  }
  return trace;
}

}  // namespace drover::bench
