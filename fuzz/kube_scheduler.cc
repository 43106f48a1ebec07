#include <nlohmann/json.hpp>

#include "base/decode.h"
#include "fuzz.h"
#include "kube/scheduler/predicates.h"

/// Whatever stands in a pod or a node: it is read or refused in words, and a cluster that it came into and
/// left is as it was.
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace drover;
  using namespace drover::kube::scheduler;
  const auto object = parse_json(fuzz::text_of(data, size), "the input");
  if (!object) return 0;
  Cluster cluster;
  if (auto node = read_node(*object)) cluster.put_node(*node);
  if (const auto claim = read_volume_claim(*object)) cluster.put_volume_claim(*claim);
  if (const auto volume = read_volume(*object)) cluster.put_volume(*volume);
  if (const auto limited = read_csi_node(*object)) cluster.put_csi_drivers(*limited);

  auto pod = read_pod(*object);
  if (!pod) {
    fuzz::require(pod.error().kind == ErrorKind::kInvalid && !pod.error().message.empty());
    return 0;
  }
  const auto nodes = cluster.nodes().size();
  for (const auto& [name, state] : cluster.nodes()) {
    const auto verdict = Predicates(cluster, *pod).check(state);
    for (const auto reason : verdict.reasons) fuzz::require(!reason.empty());
  }
  cluster.put_pod(*pod);
  cluster.remove_pod(pod->uid);
  fuzz::require(cluster.nodes().size() == nodes && cluster.anti_affinity().empty());
  return 0;
}
