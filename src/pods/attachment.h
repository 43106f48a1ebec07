#pragma once

// Joins a task that reads to those who write to it: a connection to its container as long as that runs, made
// again when it breaks. Who writes comes by the socket in the task's folder, as on one machine
// (task_input.h). What the container writes on its terminal comes the same way; without a terminal its log is
// copied (pod_streams.h). Thread safe.

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <thread>

#include "base/fd.h"
#include "base/files.h"
#include "base/result.h"
#include "container/task_input.h"
#include "kube/client/api.h"
#include "kube/client/config.h"
#include "kube/client/remote_command.h"
#include "pods/terminal_output.h"
#include "workload/task.h"

namespace drover::pods {

/// What a pod's container reads.
struct PodInput {
  std::optional<workload::Terminal> terminal;  ///< as large as it is at first; none: a pipe
};

struct AttachmentOrder {
  kube::ObjectPath pod;
  PodInput reads;
};

class Attachment {
 public:
  /// Of a container that runs; listens in the task's folder. `api` outlives it.
  static Result<std::unique_ptr<Attachment>> open(kube::Api& api, kube::ServerConfig server,
                                                  const Directory& task, AttachmentOrder order);
  /// Lets go of the container, which goes on.
  ~Attachment();
  Attachment(const Attachment&) = delete;
  Attachment& operator=(const Attachment&) = delete;

  /// The container has ended: blocks until the connection has, for so long at most.
  void finish(std::chrono::milliseconds patience);

 private:
  Attachment(kube::Api& api, kube::ServerConfig server, AttachmentOrder order, container::TaskInput input,
             std::optional<TerminalOutput> output, UniqueFd wake);

  void run(const std::stop_token& stop);
  void converse(kube::RemoteCommand& connection, const std::stop_token& stop);
  /// Whether there may be more.
  bool take_output(const kube::RemoteCommand& connection, bool first);

  kube::Api& api_;
  const kube::ServerConfig server_;
  const AttachmentOrder order_;
  container::TaskInput input_;  ///< of the thread
  std::optional<TerminalOutput> output_;
  const UniqueFd wake_;
  std::mutex mutex_;  ///< of what follows
  std::condition_variable_any changed_;
  bool over_ = false;    ///< the container has ended
  bool done_ = false;    ///< the thread has nothing left to do
  std::jthread thread_;  ///< ends first
};

}  // namespace drover::pods
