#pragma once

// A plugin of the kubelet that registers by its folder plugins_registry, as DRA and CSI drivers do: serves
// <kubelet>/plugins/<name>/<socket>, and the socket by which the kubelet finds it, and makes both anew when
// somebody removes them. Used by one thread at a time; `registered` is called from any.
//
//   KubeletPlugin plugin({.type = "CSIPlugin", …}, {&identity, &node});
//   plugin.keep();  // now and then

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "kube/rpc/socket_server.h"

namespace drover::kube {

struct KubeletPluginOptions {
  std::string kubelet_folder = "/var/lib/kubelet";
  std::string type;                   ///< as the kubelet knows it: "DRAPlugin"
  std::string name;                   ///< of the driver
  std::string socket;                 ///< its name in the driver's folder: "dra.sock"
  std::vector<std::string> versions;  ///< the kubelet takes the first of each kind that it knows
  /// What the kubelet says of the registration: "" when it is done, or what it does not like.
  std::function<void(const std::string& error)> registered;
};

class KubeletPlugin {
 public:
  /// The services must outlive it.
  KubeletPlugin(KubeletPluginOptions options, std::vector<grpc::Service*> services);
  /// The kubelet sees the registration go first. Waits for calls that are under way.
  ~KubeletPlugin();

  /// Sees to it that both sockets are there.
  Status keep();
  /// <kubelet>/plugins/<name>
  const std::string& folder() const { return folder_; }

 private:
  class Registration;

  const KubeletPluginOptions options_;
  const std::string folder_;
  const std::vector<grpc::Service*> services_;
  const std::unique_ptr<Registration> registration_;
  std::optional<SocketServer> server_, registration_server_;
};

}  // namespace drover::kube
