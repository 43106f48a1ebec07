#include "node_fillings.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

namespace drover::bench {
namespace {

constexpr double kTiny = 1e-9;
constexpr int kCpuSteps = 1300;
constexpr int kSmallestCpuStep = 100;  // milli-CPU

using Values = std::vector<double>;  // by CPUs
std::size_t at(int i) {
  return static_cast<std::size_t>(i);
}

/// All node groups of one model, for one set of rewards.
class ModelFillings {
 public:
  ModelFillings(const std::vector<PodGroup>& pods, const Values& rewards, int model, int cpus, int gpus,
                int whole)
      : pods_(pods), rewards_(rewards), cpus_(cpus), whole_(whole) {
    for (int i = 0; i < static_cast<int>(pods.size()); ++i) {
      const auto& pod = pods[at(i)];
      const auto allowed = pod.gpus == 0 || pod.models == 0 || (pod.models >> model & 1) != 0;
      if (rewards[at(i)] <= kTiny || !allowed || pod.cpus > cpus || pod.gpus > gpus) continue;
      (pod.gpus == 0       ? cpu_only_
       : pod.shares(whole) ? shares_
       : pod.gpus == 1     ? singles_
                           : multiples_)
          .push_back(i);
    }
    drop_dominated(cpu_only_);
    drop_dominated(shares_);
    fill_one_gpu();
    fill_gpus(gpus);
  }

  NodeFillings::Filling filling(const NodeGroup& node) const {
    NodeFillings::Filling filling{by_gpus_[at(node.gpus)][at(node.cpus)], {}};
    auto gpus = node.gpus;
    auto cpus = node.cpus;
    while (gpus > 0) {
      const auto [pod, part] = steps_[at(gpus)][at(cpus)];
      if (pod >= 0) {
        filling.pods.push_back(pod);
        gpus -= pods_[at(pod)].gpus;
        cpus -= pods_[at(pod)].cpus;
      } else {
        trace_gpu(part, filling.pods);
        --gpus;
        cpus -= part;
      }
    }
    for (int pod; cpus > 0; cpus -= pod >= 0 ? pods_[at(pod)].cpus : 1)
      if (pod = cpu_steps_[at(cpus)]; pod >= 0) filling.pods.push_back(pod);
    return filling;
  }

 private:
  struct Step {
    int pod = -1;  ///< of several GPUs
    int cpus = 0;  ///< else of one GPU's filling
  };

  void drop_dominated(std::vector<int>& list) const {
    const auto better = [&](int a, int b) {
      const auto &x = pods_[at(a)], &y = pods_[at(b)];
      const auto none_worse = x.cpus <= y.cpus && x.milli <= y.milli && rewards_[at(a)] >= rewards_[at(b)];
      const auto same = x.cpus == y.cpus && x.milli == y.milli && rewards_[at(a)] == rewards_[at(b)];
      return none_worse && (!same || a < b);
    };
    auto kept = list;
    std::erase_if(kept, [&](int b) {
      return std::ranges::any_of(list, [&](int a) { return a != b && better(a, b); });
    });
    list = kept;
  }

  void fill_one_gpu() {
    share_.assign(at(whole_ + 1), Values(at(cpus_ + 1), 0));
    share_steps_.assign(at(whole_ + 1), std::vector<int>(at(cpus_ + 1), -1));
    for (int room = 1; room <= whole_; ++room) {
      auto& values = share_[at(room)];
      values = share_[at(room - 1)];
      for (const auto i : shares_) {
        const auto& pod = pods_[at(i)];
        if (pod.milli > room || pod.milli == 0) continue;
        const auto& rest = share_[at(room - pod.milli)];
        for (int c = pod.cpus; c <= cpus_; ++c) {
          const auto value = rest[at(c - pod.cpus)] + rewards_[at(i)];
          if (value <= values[at(c)] + kTiny) continue;
          values[at(c)] = value;
          share_steps_[at(room)][at(c)] = i;
        }
      }
    }
    one_ = share_[at(whole_)];
    single_.assign(at(cpus_ + 1), -1);
    for (const auto i : singles_)
      for (int c = pods_[at(i)].cpus; c <= cpus_; ++c)
        if (rewards_[at(i)] > one_[at(c)]) {
          one_[at(c)] = rewards_[at(i)];
          single_[at(c)] = i;
        }
  }

  void fill_gpus(int gpus) {
    by_gpus_.assign(at(gpus + 1), Values(at(cpus_ + 1), 0));
    steps_.assign(at(gpus + 1), std::vector<Step>(at(cpus_ + 1)));
    cpu_steps_.assign(at(cpus_ + 1), -1);
    auto& none = by_gpus_[0];
    for (int c = 1; c <= cpus_; ++c) {
      none[at(c)] = none[at(c - 1)];
      for (const auto i : cpu_only_)
        if (pods_[at(i)].cpus <= c && pods_[at(i)].cpus > 0 &&
            none[at(c - pods_[at(i)].cpus)] + rewards_[at(i)] > none[at(c)] + kTiny) {
          none[at(c)] = none[at(c - pods_[at(i)].cpus)] + rewards_[at(i)];
          cpu_steps_[at(c)] = i;
        }
    }
    std::vector<int> rises;  // CPUs at which one more GPU gains more
    for (int c = 0; c <= cpus_; ++c)
      if (c == 0 || one_[at(c)] > one_[at(c - 1)] + kTiny) rises.push_back(c);
    for (int k = 1; k <= gpus; ++k) fill_gpu(k, rises);
  }

  void fill_gpu(int k, const std::vector<int>& rises) {
    auto& values = by_gpus_[at(k)];
    const auto& fewer = by_gpus_[at(k - 1)];
    for (int c = 0; c <= cpus_; ++c) {
      values[at(c)] = -1;
      for (const auto part : rises) {
        if (part > c) break;
        const auto value = one_[at(part)] + fewer[at(c - part)];
        if (value <= values[at(c)]) continue;
        values[at(c)] = value;
        steps_[at(k)][at(c)] = {-1, part};
      }
    }
    for (const auto i : multiples_) {
      const auto& pod = pods_[at(i)];
      if (pod.gpus > k) continue;
      for (int c = pod.cpus; c <= cpus_; ++c) {
        const auto value = by_gpus_[at(k - pod.gpus)][at(c - pod.cpus)] + rewards_[at(i)];
        if (value <= values[at(c)] + kTiny) continue;
        values[at(c)] = value;
        steps_[at(k)][at(c)] = {i, 0};
      }
    }
  }

  void trace_gpu(int cpus, std::vector<int>& pods) const {
    if (single_[at(cpus)] >= 0) {
      pods.push_back(single_[at(cpus)]);
      return;
    }
    for (auto room = whole_; room > 0;) {
      const auto i = share_steps_[at(room)][at(cpus)];
      if (i < 0) {
        --room;
        continue;
      }
      pods.push_back(i);
      room -= pods_[at(i)].milli;
      cpus -= pods_[at(i)].cpus;
    }
  }

  const std::vector<PodGroup>& pods_;
  const Values& rewards_;
  int cpus_, whole_;
  std::vector<int> cpu_only_, shares_, singles_, multiples_;
  std::vector<Values> share_;  ///< [room of one GPU][CPUs]
  std::vector<std::vector<int>> share_steps_;
  Values one_;  ///< [CPUs]: of one idle GPU
  std::vector<int> single_;
  std::vector<Values> by_gpus_;  ///< [idle GPUs][CPUs]
  std::vector<std::vector<Step>> steps_;
  std::vector<int> cpu_steps_;
};

}  // namespace

NodeFillings::NodeFillings(const Trace& trace) {
  std::int64_t most = 1;
  for (const auto& node : trace.nodes) most = std::max(most, node.milli_cpus);
  const auto cpu_step = std::max<std::int64_t>(kSmallestCpuStep, (most + kCpuSteps - 1) / kCpuSteps);
  auto share_step = kGpuMilli;
  for (const auto& shape : trace.shapes)
    if (shape.shares()) share_step = std::gcd(share_step, shape.gpu_milli);

  whole_ = kGpuMilli / share_step;

  std::map<std::tuple<std::int64_t, int, int, std::uint32_t>, int> pods;
  for (const auto& shape : trace.shapes) {
    const auto cpus = shape.milli_cpus / cpu_step;
    const auto [found, added] =
        pods.try_emplace({cpus, shape.gpus, shape.gpu_milli, shape.models}, static_cast<int>(pods_.size()));
    if (added)
      pods_.push_back({static_cast<int>(std::min<std::int64_t>(cpus, 2 * kCpuSteps)),
                       shape.gpu_milli / share_step, shape.gpus, shape.models,
                       static_cast<double>(shape.demand())});
    group_of_.push_back(found->second);
  }
  std::map<std::tuple<std::int64_t, int, int>, int> nodes;
  for (const auto& node : trace.nodes) ++nodes[{node.milli_cpus / cpu_step, node.gpus, node.model}];
  for (const auto& [key, count] : nodes)
    nodes_.push_back({static_cast<int>(std::get<0>(key)), std::get<1>(key), std::get<2>(key), count});
}

std::vector<NodeFillings::Filling> NodeFillings::best(const std::vector<double>& rewards) const {
  std::map<int, std::pair<int, int>> largest;  // model: most CPUs, most GPUs
  for (const auto& node : nodes_) {
    auto& [cpus, gpus] = largest[node.model];
    cpus = std::max(cpus, node.cpus);
    gpus = std::max(gpus, node.gpus);
  }
  std::vector<Filling> fillings(nodes_.size());
  for (const auto& [model, size] : largest) {
    const ModelFillings of_model(pods_, rewards, model, size.first, size.second, whole_);
    for (std::size_t i = 0; i < nodes_.size(); ++i)
      if (nodes_[i].model == model) fillings[i] = of_model.filling(nodes_[i]);
  }
  return fillings;
}

}  // namespace drover::bench
