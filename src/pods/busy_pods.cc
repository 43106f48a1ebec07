#include "pods/busy_pods.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "base/in_parallel.h"
#include "kube/sandboxes/client.h"

namespace drover::pods {
namespace {

struct AskedNode {
  std::string name;
  std::map<std::string, std::string> tasks;  ///< by the uids of their pods
  Result<kube::IdleTimes> idle;
};

}  // namespace

std::set<std::string> BusyPods::find(const std::map<std::string, std::vector<SandboxPlace>>& tasks) {
  std::set<std::string> busy;
  std::map<std::string, std::map<std::string, std::string>> by_node;
  for (const auto& [task, places] : tasks) {
    if (places.empty())
      busy.insert(task);
    else
      by_node[places.back().node][places.back().uid] = task;
  }
  std::vector<AskedNode> nodes;
  for (auto& [name, asked] : by_node) nodes.push_back({name, std::move(asked), {}});
  std::erase_if(told_at_, [&](const auto& known) { return !by_node.contains(known.first); });

  const auto began = Clock::now();
  in_parallel(nodes, kNodesAtOnce,
              [&](AskedNode& node) { node.idle = kube::idle_times(agents_.agent(node.name)); });
  const auto ended = Clock::now();

  Status all;
  for (const auto& node : nodes) {
    const auto before = told_at_.find(node.name);
    for (const auto& [uid, task] : node.tasks) {
      const auto idle = node.idle ? node.idle->find(uid) : kube::IdleTimes::const_iterator();
      const bool known = node.idle && idle != node.idle->end() && before != told_at_.end();
      // Looked at from both ends, so that what lies in between is not lost.
      if (!known || idle->second <= ended - before->second) busy.insert(task);
    }
    if (node.idle)
      told_at_[node.name] = began;
    else
      all = Failure(context(node.idle.error(),
                            fmt::format("Whether GPUs do nothing on node '{}' is not known", node.name)));
  }
  trouble_.report(all);
  return busy;
}

}  // namespace drover::pods
