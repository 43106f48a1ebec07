#pragma once

// Tasks as pods: the Containerizer of a Kubernetes cluster, by its API server. An attempt has one pod, which
// its cluster's scheduler places (attempt.h says what follows from what is seen of it). What a pod writes is
// copied into a folder here, so that it can be read as on one machine, also when the pod is gone.

#include <boost/asio/thread_pool.hpp>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <string>

#include "base/files.h"
#include "container/containerizer.h"
#include "kube/client/api.h"
#include "kube/client/config.h"
#include "kube/client/informer.h"
#include "pods/attempt.h"
#include "pods/node_agents.h"
#include "pods/overdue_pods.h"
#include "pods/pod_store.h"
#include "pods/pod_streams.h"
#include "pods/pod_view.h"
#include "pods/pod_writer.h"

namespace drover::pods {

struct PodContainerizerOptions {
  PodSettings pods;
  std::string state;  ///< the daemon's folder: copies are in tasks/<id>/sandbox
  container::Watcher watcher;
  std::optional<kube::ServerConfig> server = {};  ///< of the same API server: for commands in containers
  std::chrono::milliseconds again{2000};          ///< what failed is tried again after it
  std::chrono::milliseconds listing{5 * 60'000};  ///< how long the first look at the cluster may take
  StreamLimits streams = {};
  NodeAgents* agents = nullptr;  ///< of nodes that keep sandboxes; null: those end with their pods
  /// Longer than a kubelet needs to end a pod whose time is over.
  std::chrono::milliseconds overdue{3000};
};

class PodContainerizer final : public container::Containerizer {
 public:
  /// After a look at all pods of this journal. `api` outlives it.
  static Result<std::unique_ptr<PodContainerizer>> create(kube::Api& api, PodContainerizerOptions options);
  ~PodContainerizer() override;

  /// The pod is made, or will be as soon as the API server answers again.
  Status launch(const container::Launch& launch) override;
  Status stop(const std::string& task_id, bool force) override;
  Result<container::Found> recover(const std::string& task_id, int attempt) override;
  Status clean(const std::string& task_id) override;
  Status forget(const std::string& task_id) override;
  Result<std::unique_ptr<container::ExecProcess>> exec(const std::string& task_id,
                                                       const container::ExecRequest& request) override;
  Result<UniqueFd> connect_input(const std::string& task_id) override;
  std::vector<std::string> known() const override;
  Result<container::FolderView> examine(const std::string& task_id) const override;
  Status end(const std::string& task_id) override { return clean(task_id); }
  Result<std::string> quarantine(const std::string& task_id) override;
  Quarantine quarantined() const override;
  std::string sandbox(const std::string& task_id) const override;
  std::shared_ptr<const SandboxReader> files(const std::string& task_id) const override;

 private:
  struct Attempt;
  using AttemptPointer = std::shared_ptr<Attempt>;
  using View = std::shared_ptr<const PodView>;

  PodContainerizer(kube::Api& api, PodContainerizerOptions options, Directory tasks);

  // Of what is seen:
  void seen(const kube::Change<PodView>& change);
  void see(const AttemptPointer& attempt, const std::optional<nlohmann::json>& pod);
  View view_of(const AttemptPointer& attempt) const;

  void begin(const AttemptPointer& attempt);

  // Of what is done; the attempt's mutex is held:
  void look_at(const AttemptPointer& attempt);
  Status make(const AttemptPointer& attempt);
  /// Whether there may be more to do.
  bool tell(const AttemptPointer& attempt, News news, const View& view);
  /// A start is told with what its node says of its shares, which may be a moment after it.
  void tell_start(const AttemptPointer& attempt, const View& view);
  Status perform(const AttemptPointer& attempt, Deed deed, const View& view);
  /// Ends it where its kubelet gives it more time than it has.
  void hurry(const AttemptPointer& attempt, const View& view);
  void note_sandbox(const AttemptPointer& attempt, const View& view) const;
  void tell_end(const AttemptPointer& attempt, News news, const View& view);
  std::string why_evicted(const PodView& view) const;
  std::optional<std::string> task_of(const std::string& name_space, const std::string& pod) const;
  /// Until it is done.
  void let_go(const View& view);

  void soon(const AttemptPointer& attempt);
  void later(const AttemptPointer& attempt, std::chrono::milliseconds pause);
  AttemptPointer find(const std::string& task_id) const;

  const PodContainerizerOptions options_;
  const Directory tasks_;
  PodStore store_;
  PodStreams streams_;
  std::unique_ptr<OverduePods> overdue_;                     ///< null where no agent could be asked
  mutable std::mutex mutex_;                                 ///< of what follows
  std::map<std::string, AttemptPointer> attempts_;           ///< by task
  std::set<std::string> cleaned_;                            ///< tasks of which nothing is to be left
  std::map<std::string, std::map<std::string, View>> pods_;  ///< by task, by key: all of this journal
  std::stop_source stop_;
  boost::asio::thread_pool threads_;
  std::unique_ptr<kube::Informer<PodView>> informer_;  ///< goes first
};

}  // namespace drover::pods
