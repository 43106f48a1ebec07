#pragma once

// Serves every resource of a pool at a socket of its own, and keeps all of them registered: the kubelet
// forgets its plugins when it starts, and removes their sockets. When a plugin of before goes away it drops
// the one that has come since, whose name is the same. Either is noticed at once: a pod that comes in
// meanwhile has failed for good. A thread of its own; thread safe.

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "kube/plugin/folder_watch.h"
#include "kube/plugin/pool.h"

namespace drover::kube {

inline constexpr const char* kPluginFolder = "/var/lib/kubelet/device-plugins";

struct PluginHostOptions {
  std::string folder = kPluginFolder;
  std::chrono::milliseconds poll_interval{500};  ///< how often sockets and resources are looked at, at least
  /// Called from the thread; `text` is a sentence.
  std::function<void(const std::string& text)> info, warn;
};

/// The name of a resource's socket: short enough for a path, and the same each time.
std::string plugin_socket_name(const std::string& resource);

class PluginHost {
 public:
  /// `pool` must outlive it.
  PluginHost(Pool& pool, PluginHostOptions options);
  ~PluginHost();

 private:
  struct Plugin;
  void run(const std::stop_token& stop);
  std::chrono::milliseconds maintain(Plugin& plugin);
  bool register_plugin(Plugin& plugin);

  Pool& pool_;
  PluginHostOptions options_;
  FolderWatch folder_;                                      ///< outlives the plugins, which wake it
  std::map<std::string, std::unique_ptr<Plugin>> plugins_;  ///< by resource; the thread's own
  std::jthread thread_;
};

}  // namespace drover::kube
