#include "linear_scan.h"

#include <map>
#include <memory>

#include "placement/cluster_impl.h"
#include "placement/shape_view.h"

namespace drover::bench {

using namespace placement;

LinearScan::LinearScan(const std::vector<Node>& nodes) {
  std::map<std::string, std::shared_ptr<const NodeKind>> kinds;
  for (const auto& node : nodes) {
    auto& kind = kinds[fingerprint(node)];
    if (!kind)
      kind = std::make_shared<const NodeKind>(make_node_kind(node, static_cast<int>(kinds.size()) - 1));
    NodeEntry entry{.node = std::make_shared<const Node>(node), .kind = kind};
    entry.state = make_node_state(node, *kind);
    nodes_.append(std::move(entry));
  }
  std::vector<const NodeKind*> present;
  for (const auto& [text, kind] : kinds) present.push_back(kind.get());
  context_.worth = ranks_of(present);
}

std::optional<std::size_t> LinearScan::place(const Request& request) const {
  const Shape shape(request);
  OptionMemory memory;
  std::optional<std::size_t> best;
  Score least = kNoScore;
  for (std::size_t slot = 0; slot < nodes_.size(); ++slot) {
    const auto& entry = nodes_.at(slot);
    if (host_obstacle(entry.state, request)) continue;
    const auto evaluation = evaluate(context_, entry, shape, &memory);
    if (evaluation.score >= least) continue;
    least = evaluation.score;
    best = slot;
  }
  return best;
}

void LinearScan::allocate(const Request& request, const Decision& decision) {
  nodes_.change(*nodes_.find(decision.node), [&](NodeEntry& entry) {
    charge(entry, {decision, request.milli_cpus, request.memory_bytes, ""}, true, 1);
  });
}

}  // namespace drover::bench
