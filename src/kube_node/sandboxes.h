#pragma once

// The role `sandboxes` of `drover kube node`: its parts put together. What is called here is called now and
// then, each by one thread; the kubelet and the control plane come on threads of their own.

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/log_once.h"
#include "cli/cli.h"
#include "kube/client/api.h"
#include "kube/sandboxes/driver.h"
#include "kube/sandboxes/service.h"
#include "kube/sandboxes/store.h"

namespace drover {

class KubeSandboxes {
 public:
  /// `version`: of this program. `pods` is the control plane's to call. `log` gets sentences, from any
  /// thread.
  KubeSandboxes(const cli::KubeNodeOptions& options, std::string version, kube::PodCalls pods,
                std::function<void(const std::string& sentence)> log);

  /// Begins to serve, or sees to it that the kubelet still finds it.
  void serve();
  /// Measures, and ends what is kept for too long.
  void tidy();
  /// Tells the cluster whether pods may have sandboxes here; seldom.
  void tell(kube::Api& api);

 private:
  Status begin();
  kube::SandboxStore* store();

  const cli::KubeNodeOptions& options_;
  const bool is_on_;
  const std::string version_;
  const kube::PodCalls pods_;
  const std::function<void(const std::string&)> log_;
  LogOnce trouble_, tidy_trouble_, label_trouble_;
  std::chrono::steady_clock::time_point next_telling_{};  ///< tell()'s alone
  std::chrono::steady_clock::time_point next_tidying_{};  ///< tidy()'s alone
  std::mutex mutex_;                                      ///< of what begins late
  std::optional<kube::SandboxStore> store_;
  std::unique_ptr<kube::SandboxService> service_;
  std::unique_ptr<kube::SandboxDriver> driver_;
};

}  // namespace drover
