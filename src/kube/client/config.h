#pragma once

// Where the API server is, whom to believe there, and what to show it: out of a kubeconfig, or out of what
// every pod is given. Thread safe; reads files.

#include <string>
#include <string_view>

#include "base/result.h"

namespace drover::kube {

/// PEM or a token: as text, or in a file that is read anew for each request, since such files rotate.
struct Secret {
  std::string text;
  std::string file;

  bool empty() const { return text.empty() && file.empty(); }
  bool operator==(const Secret&) const = default;
};
/// At most 1 MiB; "" of an empty one. No message shows what it is.
Result<std::string> read_secret(const Secret& secret);

struct ServerConfig {
  std::string url;     ///< "https://10.96.0.1:443"; no '/' at its end. Plain http only to this machine
  Secret authorities;  ///< the only ones that are believed; empty: those that the machine trusts
  Secret certificate;  ///< that the client shows, and its key; empty: none
  Secret key;
  Secret token;            ///< shown as a bearer; empty: none
  std::string name_space;  ///< of the pod, or of the context
  std::string source;      ///< where this stands, for messages: "kubeconfig '/etc/x'"

  bool operator==(const ServerConfig&) const = default;
};

/// Where a configuration may come from.
struct ConfigSources {
  std::string kubeconfig;    ///< a file; "": none is named
  std::string context = {};  ///< of the kubeconfig; "": its current one
  std::string service_host;
  std::string service_port;
  std::string account_folder = "/var/run/secrets/kubernetes.io/serviceaccount";

  /// What is named, else $KUBECONFIG; and the variables of a pod.
  static ConfigSources of_environment(std::string named);
};

/// The kubeconfig if there is one, else the ServiceAccount of this pod. kNotFound when there is neither.
Result<ServerConfig> find_config(const ConfigSources& sources);

/// One context of a kubeconfig (YAML or JSON), the current one when `wanted` is "". Files that it names are
/// relative to `folder`. Fields that are not known are ignored; what would change whom we trust or who we
/// are, and is not supported, is refused: login programs, passwords, impersonation, proxies, and servers that
/// are not verified.
Result<ServerConfig> parse_kubeconfig(std::string_view text, std::string_view what, const std::string& folder,
                                      const std::string& wanted = "");

}  // namespace drover::kube
