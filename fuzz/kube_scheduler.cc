#include <nlohmann/json.hpp>

#include "base/decode.h"
#include "fuzz.h"
#include "kube/scheduler/gangs/book.h"
#include "kube/scheduler/predicates.h"
#include "kube/scheduler/sharing/pod_queue.h"

namespace {

using namespace drover;
using namespace drover::kube::scheduler;

/// What is no queue is refused in words, and the rules hold without it.
void try_sharing(const nlohmann::json& object) {
  const auto shared = std::make_shared<const nlohmann::json>(object);
  const auto sharing = read_sharing({shared}, {shared});
  fuzz::require(placement::validate(sharing.rules).has_value());
  fuzz::require(sharing.rules.queues.size() + sharing.refused_queues.size() == 1);
  const auto queue = queue_of(sharing, read_queue_names(object), {});
  if (const auto may = may_stand(sharing, queue, "team", 0); !may)
    fuzz::require(!may.error().message.empty());
}

/// A gang that a pod came into and left is as it was.
void try_gang(const nlohmann::json& object, const Pod& pod) {
  for (const auto* const group :
       {"scheduling.k8s.io", "scheduling.volcano.sh", "jobset.x-k8s.io", "kubeflow.org"})
    if (const auto read = kube::scheduler::read_gang_group({group, "v1", "any"}, object))
      fuzz::require(read->minimum >= 0);
  const auto member = read_gang_member(object);
  if (!member || !*member) return;
  GangBook book;
  book.put_pod(pod, **member);
  const auto view = book.view((*member)->gang);
  fuzz::require(view.together.size() + view.later.size() + view.bound.size() <= 1);
  book.remove_pod(pod.uid);
  fuzz::require(book.absent().empty() && book.half().empty());
}

}  // namespace

/// Whatever stands in a pod or a node: it is read or refused in words, and a cluster that it came into and
/// left is as it was.
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto object = parse_json(fuzz::text_of(data, size), "the input");
  if (!object) return 0;
  try_sharing(*object);
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
  try_gang(*object, *pod);
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
