#pragma once

// Serves every resource of a pool at a socket of its own, and keeps all of them registered: the kubelet
// forgets its plugins when it starts, and removes their sockets. A thread of its own; thread safe.

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "kube/plugin/pool.h"

namespace drover::kube {

inline constexpr const char* kPluginFolder = "/var/lib/kubelet/device-plugins";

struct PluginHostOptions {
  std::string folder = kPluginFolder;
  std::chrono::milliseconds look{500};  ///< how often sockets and resources are looked at
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
  void look_at(Plugin& plugin);
  bool register_plugin(Plugin& plugin);

  Pool& pool_;
  PluginHostOptions options_;
  std::map<std::string, std::unique_ptr<Plugin>> plugins_;  ///< by resource; the thread's own
  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::jthread thread_;
};

}  // namespace drover::kube
