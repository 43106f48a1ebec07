#include "placement/awaited.h"

#include <optional>

#include "placement/words.h"

namespace drover::placement {
namespace {

constexpr std::size_t kMostNodes = 100;

bool fits_without_cordon(Cluster cluster, const Node& node, const Gang& gang) {
  auto open = node;
  open.cordoned.clear();
  cluster.set_node(std::move(open));
  return try_place(cluster, gang).has_value();
}

/// How many GPUs the node is short of; nothing when it is short of something else too.
std::optional<int> missing_gpus(Cluster& cluster, Cluster& empty, const std::string& node,
                                const Request& request) {
  if (!empty.try_place_on(node, request)) return std::nullopt;
  auto fewer = request;
  for (int count = request.gpu_count() - 1; count > 0; --count) {
    set_gpus(fewer, count);
    if (cluster.try_place_on(node, fewer)) return request.gpu_count() - count;
  }
  Request host;
  host.milli_cpus = request.milli_cpus;
  host.memory_bytes = request.memory_bytes;
  if (cluster.try_place_on(node, host)) return request.gpu_count();
  return std::nullopt;
}

}  // namespace

std::string awaited(const Cluster& cluster, const Gang& gang) {
  const auto names = cluster.nodes();
  if (names.size() > kMostNodes) return "";
  for (const auto& name : names)
    if (const auto& node = *cluster.node(name);
        !node.cordoned.empty() && fits_without_cordon(cluster, node, gang))
      return "uncordon " + name;
  const auto& request = gang.members.front();
  if (gang.members.size() != 1 || request.gpus.size() != 1 || !request.share.whole()) return "";
  auto copy = cluster;
  auto empty = cluster.emptied();
  std::optional<int> fewest;
  std::string where;
  for (const auto& name : names)
    if (const auto missing = missing_gpus(copy, empty, name, request);
        missing && (!fewest || *missing < *fewest)) {
      fewest = missing;
      where = name;
    }
  return fewest ? "wait for " + gpus_text(*fewest) + " of " + where : "";
}

}  // namespace drover::placement
