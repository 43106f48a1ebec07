#pragma once

// What the agent of a node answers about the sandboxes that it keeps, and about pods with GPUs, at a unix
// socket that only root may connect to (wire.h, one request after the other). Paths of files are looked up
// beneath their sandbox, with the rights of the user who is named (base/sandbox.h).
//
//   GET /sandboxes                                               all of them, with their sizes
//   GET /sandboxes/UID/files?path=P&uid=U&gid=G&groups=A,B&name=N         what is in a folder
//   GET /sandboxes/UID/file?path=P&…&offset=O&length=L[&inode=I]  a piece of a file, or of none but that one
//   DELETE /sandboxes/UID
//   GET /idle                                                    how long GPUs of pods did nothing
//   DELETE /pods/UID               kills the containers of a pod that has a sandbox here, and may be repeated
//
// Errors are JSON: {"error": {"kind", "message", "hint", "path"}}.

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "base/fd.h"
#include "base/result.h"
#include "kube/sandboxes/store.h"
#include "kube/sandboxes/wire.h"
#include "kube/usage/idle_pods.h"

namespace drover::kube {

/// What the agent knows of pods, and does to them. Block, any thread. Either may be empty: then nobody does.
struct PodCalls {
  std::function<Result<IdleTimes>()> idle;
  std::function<Status(const std::string& uid)> kill;  ///< this one at once; fine when nothing of it runs
};

/// Blocks; any thread.
WireAnswer answer(SandboxStore& store, const PodCalls& pods, const WireRequest& request);

class SandboxService {
 public:
  /// In the folder of `store`, which outlives it.
  static Result<std::unique_ptr<SandboxService>> listen(SandboxStore& store, PodCalls pods);
  /// Closes all connections, and waits for what is being answered.
  ~SandboxService();

 private:
  SandboxService(SandboxStore& store, PodCalls pods, UniqueFd socket);
  void accept();
  void serve(int connection);

  SandboxStore& store_;
  const PodCalls pods_;
  const UniqueFd socket_, wake_;
  std::atomic<bool> ending_ = false;
  std::mutex mutex_;
  std::set<int> connections_;  ///< under way
  std::condition_variable ended_;
  std::thread thread_;
};

}  // namespace drover::kube
