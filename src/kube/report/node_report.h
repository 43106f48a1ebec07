#pragma once

// Tells the cluster what this node's GPUs are like, so that nobody has to look into a log: labels and
// conditions of the node, and Events of the node and of pods whose GPU fails or comes back. With the labels
// goes the annotation that schedulers choose GPUs by (gpu_topology.h).
//
//   NodeReport report({.node = "gpu-1", …});
//   report.reach(api);
//   report.update(state);
//
// Labels and conditions are written when they change, and looked after every minute: somebody may have
// removed them, or made the Node anew. Events do not wait for them. Two threads of its own, and that of the
// Events. Thread safe.

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/log_once.h"
#include "kube/client/api.h"
#include "kube/events/event_recorder.h"
#include "kube/labels/node_labels.h"
#include "kube/plugin/config.h"
#include "kube/report/node_state.h"

namespace drover::kube {

struct NodeReportOptions {
  std::string node;    ///< the Node's name
  std::string driver;  ///< of claims
  bool labels = true, conditions = true, events = true;
  std::string feature_file;  ///< where labels go instead, for node-feature-discovery; "": nowhere
  PluginConfig config;       ///< labels tell how GPUs are shared
  std::string root = "/";    ///< where the kernel's facts for labels are
  std::chrono::milliseconds again{std::chrono::minutes(1)};   ///< how often what stands there is looked after
  std::chrono::milliseconds retry{std::chrono::seconds(10)};  ///< after something failed
  /// Which containers have devices now: a container may have started just before its GPU fails. May block.
  std::function<Result<std::vector<ContainerUse>>()> containers;
  /// UIDs of the pods that run here; Events without them are not shown by `kubectl describe`. May block.
  std::function<Result<std::map<PodName, std::string>>()> pod_uids;
  std::function<void(const std::string& sentence)> warn;  ///< from any thread; may be absent
};

class NodeReport {
 public:
  explicit NodeReport(NodeReportOptions options);
  NodeReport(const NodeReport&) = delete;
  NodeReport& operator=(const NodeReport&) = delete;
  /// What was written stays: pods go on, and so does what is known of the node.
  ~NodeReport();

  /// Whether it has anything to say to the API server.
  bool needs_api() const;

  // None of these blocks.
  /// Until it is called, only the feature file is written.
  void reach(std::shared_ptr<Api> api);
  void update(NodeState state);
  void changed(const gpu::HealthChange& change);

 private:
  struct Work {
    std::shared_ptr<Api> api;
    std::optional<NodeState> state;
    std::deque<gpu::HealthChange> changes;
  };
  struct SentEvent {
    std::string uuid;  ///< the GPU's
    GpuEvent event;
  };

  void keep_written(const std::stop_token& stop);
  void keep_reporting(const std::stop_token& stop);
  /// `again`: also what is as it was written last.
  bool write(const Work& work, bool again);
  Status write_labels(const Work& work, bool again);
  Status write_conditions(const Work& work, bool again);
  /// What is to be told to pods too.
  std::vector<SentEvent> report_on_node(const Work& work);
  /// False when it is not known which pods; `in_any_case` it is told to those that are known.
  bool report_on_pods(const NodeState& state, const std::vector<SentEvent>& sent, bool in_any_case);

  const NodeReportOptions options_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  Work work_;
  bool fresh_ = false;                             ///< what is to be written, since the writer looked
  std::pair<Labels, Labels> labels_written_;       ///< the writer's; with annotations
  std::vector<NodeCondition> conditions_written_;  ///< the writer's
  LogOnce labels_trouble_, conditions_trouble_;    ///< the writer's
  LogOnce pods_trouble_;                           ///< the reporter's
  std::unique_ptr<EventRecorder> events_;          ///< the reporter's
  std::jthread writer_, reporter_;
};

}  // namespace drover::kube
