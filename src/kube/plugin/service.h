#pragma once

// The device plugin service of one resource: messages of the kubelet's API to and from the pool. Its methods
// run on any thread.

#include <functional>
#include <memory>
#include <string>

#include "kube/plugin/pool.h"

namespace grpc {
class Service;
}

namespace drover::kube {

class PluginService {
 public:
  /// `pool` must outlive it. `unwatched` is called, from any thread, when somebody watches the devices no
  /// more.
  PluginService(Pool& pool, std::string resource, std::function<void()> unwatched);
  ~PluginService();

  const std::string& resource() const { return resource_; }
  grpc::Service* service();
  /// Whether somebody watches the list of devices: a kubelet that takes this plugin for alive does.
  bool is_watched() const;
  /// How often somebody began to.
  int watches() const;

 private:
  class Methods;
  std::string resource_;
  std::unique_ptr<Methods> methods_;
};

}  // namespace drover::kube
