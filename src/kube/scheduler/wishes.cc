#include "kube/scheduler/wishes.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/shorten.h"
#include "kube/scheduler/predicates.h"
#include "placement/words.h"

namespace drover::kube::scheduler {
namespace {

constexpr std::size_t kMostKinds = 8;    ///< of taints, and of amounts, that are tried
constexpr std::size_t kMostWishes = 32;  ///< of a pod, whatever is written into it
constexpr std::int64_t kMebibyte = 1LL << 20;

/// As kubectl writes it.
std::string shown(const Taint& taint) {
  return fmt::format("'{}{}{}:{}'", shortened(taint.key), taint.value.empty() ? "" : "=",
                     shortened(taint.value), taint.effect);
}

/// Whether it says how a node is, rather than for whom it is.
bool is_of_state(const Taint& taint) {
  return taint.key.starts_with("node.kubernetes.io/") ||
         taint.key.starts_with("node.cloudprovider.kubernetes.io/");
}

class WishList {
 public:
  WishList(const PodTemplate& pod, const Cluster& cluster) : pod_(pod), cluster_(cluster) {}

  std::vector<Wish> make() {
    tolerate();
    leave_out_labels();
    leave_out_relations();
    leave_out_ports();
    ask_for_less();
    change_nodes();
    if (wishes_.size() > kMostWishes) wishes_.resize(kMostWishes);
    return std::move(wishes_);
  }

 private:
  void add(std::function<void(PodTemplate&)> give_up, std::string remedy) {
    wishes_.push_back(
        {std::move(give_up), [remedy = std::move(remedy)](const std::string&) { return remedy; }});
  }

  /// The distinct ones that keep it off nodes.
  std::set<Taints> untolerated_taints() const {
    std::set<Taints> all;
    for (const auto& taints : cluster_.taints()) {
      Taints kept;
      for (const auto& taint : *taints)
        if (untolerated({taint}, pod_.tolerations) != nullptr) kept.push_back(taint);
      if (!kept.empty() && all.size() < kMostKinds) all.insert(std::move(kept));
    }
    return all;
  }

  static std::function<void(PodTemplate&)> tolerating(const Taints& taints) {
    return [taints](PodTemplate& pod) {
      for (const auto& taint : taints) pod.tolerations.push_back({taint.key, "Exists", "", taint.effect});
    };
  }

  void tolerate() {
    for (const auto& taints : untolerated_taints()) {
      if (std::ranges::any_of(taints, is_of_state)) continue;
      std::vector<std::string> names;
      for (const auto& taint : taints) names.push_back(shown(taint));
      add(tolerating(taints), fmt::format("tolerate the taint{} {}", names.size() == 1 ? "" : "s",
                                          placement::list_text(names, "and")));
    }
  }

  void leave_out_labels() {
    for (const auto& [key, value] : pod_.node_selector)
      if (wishes_.size() < kMostWishes / 2)
        add([left_out = key](PodTemplate& pod) { pod.node_selector.erase(left_out); },
            fmt::format("leave {}={} out of its node selector", shortened(key), shortened(value)));
    if (pod_.node_selector.size() > 1)
      add([](PodTemplate& pod) { pod.node_selector.clear(); }, "leave out its node selector");
    if (pod_.node_terms)
      add([](PodTemplate& pod) { pod.node_terms.reset(); }, "leave out its required node affinity");
    if (pod_.node_terms && !pod_.node_selector.empty())
      add(
          [](PodTemplate& pod) {
            pod.node_terms.reset();
            pod.node_selector.clear();
          },
          "leave out its node selector and its required node affinity");
  }

  void leave_out_relations() {
    if (!pod_.affinity.empty())
      add([](PodTemplate& pod) { pod.affinity.clear(); }, "leave out its required pod affinity");
    if (!pod_.anti_affinity.empty())
      add([](PodTemplate& pod) { pod.anti_affinity.clear(); }, "leave out its required pod anti-affinity");
    if (!pod_.spread.empty())
      add([](PodTemplate& pod) { pod.spread.clear(); }, "leave out its topology spread constraints");
  }

  void leave_out_ports() {
    if (pod_.ports.empty()) return;
    std::vector<std::string> ports;
    for (const auto& port : pod_.ports) ports.push_back(std::to_string(port.port));
    add([](PodTemplate& pod) { pod.ports.clear(); },
        fmt::format("leave out the host port{} {}", ports.size() == 1 ? "" : "s",
                    placement::list_text(ports, "and")));
  }

  /// Of what only nodes' own books count.
  void ask_for_less() {
    const auto less = [&](std::int64_t wanted, std::int64_t step, const auto& free_of, const auto& set,
                          const auto& text) {
      if (wanted <= 0) return;
      std::set<std::int64_t, std::greater<>> amounts;
      for (const auto& [unused, state] : cluster_.nodes())
        if (state.node) amounts.insert(free_of(state) / step * step);
      std::size_t tried = 0;
      for (const auto amount : amounts)
        if (amount > 0 && amount < wanted && tried++ < kMostKinds)
          add([set, amount](PodTemplate& pod) { set(pod.requests, amount); },
              "ask for at most " + text(amount));
    };
    less(
        pod_.requests.storage, kMebibyte,
        [](const NodeState& state) { return state.node->allocatable.storage - state.requested.storage; },
        [](Resources& requests, std::int64_t amount) { requests.storage = amount; },
        [](std::int64_t amount) { return fmt::format("{}Mi of ephemeral-storage", amount / kMebibyte); });
    std::size_t kinds = 0;
    for (const auto& other : pod_.requests.others) {
      if (++kinds > kMostKinds) return;
      const auto& name = other.first;
      const auto of = [resource = name](const Resources& resources) {
        const auto found = resources.others.find(resource);
        return found == resources.others.end() ? 0 : found->second;
      };
      less(
          other.second, 1,
          [of](const NodeState& state) { return of(state.node->allocatable) - of(state.requested); },
          [resource = name](Resources& requests, std::int64_t amount) { requests.others[resource] = amount; },
          [resource = name](std::int64_t amount) {
            return fmt::format("{} of {}", amount, shortened(resource));
          });
    }
  }

  /// What whoever runs the cluster could do.
  void change_nodes() {
    wishes_.push_back({tolerating({{"node.kubernetes.io/unschedulable", "", "NoSchedule"}}),
                       [](const std::string& node) { return fmt::format("uncordon the node '{}'", node); }});
    for (const auto& taints : untolerated_taints()) {
      if (std::ranges::none_of(taints, is_of_state)) continue;
      std::vector<std::string> names;
      for (const auto& taint : taints) names.push_back(shown(taint));
      wishes_.push_back({tolerating(taints), [names](const std::string& node) {
                           return fmt::format("wait until the node '{}' has no taint {} any more", node,
                                              placement::list_text(names, "and"));
                         }});
    }
  }

  const PodTemplate& pod_;
  const Cluster& cluster_;
  std::vector<Wish> wishes_;
};

}  // namespace

std::vector<Wish> wishes_of(const PodTemplate& pod, const Cluster& cluster) {
  return WishList(pod, cluster).make();
}

}  // namespace drover::kube::scheduler
