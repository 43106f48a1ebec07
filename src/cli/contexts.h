#pragma once

// The daemons that a user has given names to, and which of them his commands speak to: a file of his own,
// in $XDG_CONFIG_HOME/drover or ~/.config/drover, which nobody else may read, since tokens are in it.

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/result.h"
#include "cli/gateway.h"

namespace drover::cli {

struct Hooks;

/// `socket`, `host` or `kubeconfig` says where the daemon is.
struct NamedContext {
  std::string socket = {};        ///< an absolute path
  std::string host = {};          ///< "http://HOST:PORT", or https
  std::string token = {};         ///< with a host, or a kubeconfig
  std::string ca_file = {};       ///< with a host; an absolute path
  std::string kubeconfig = {};    ///< of the cluster that the daemon runs in; an absolute path
  std::string kube_context = {};  ///< of the kubeconfig; "": its current one
  std::string name_space = {};    ///< of the daemon's Service
  std::string service = {};       ///< "NAME:PORT"

  bool operator==(const NamedContext&) const = default;
};

/// What is said in place of a name for the daemon of this machine.
inline constexpr const char* kNoContext = "none";

struct Contexts {
  std::string used;  ///< one of `all`; "": this machine's own daemon
  std::map<std::string, NamedContext> all;

  /// kNotFound, with the name that was probably meant.
  Result<NamedContext> find(const std::string& name) const;
};

/// The way to a daemon in a cluster: its kubeconfig is read.
Result<Gateway> find_gateway(const Hooks& hooks, const NamedContext& context);
/// Whether it can be what a Service is reached by: names of a namespace, a Service and a port.
Status check_service(const NamedContext& context);
/// For people.
std::string whereabouts_of(const NamedContext& context);

/// 1 to 64 letters, digits, '.', '_' and '-', and not kNoContext; kInvalid.
Status check_context_name(const std::string& name);

nlohmann::json encode(const Contexts& contexts);
/// All mistakes at once; unknown fields are mistakes. decode_contexts(encode(x)) == x.
Result<Contexts> decode_contexts(const nlohmann::json& value);

/// Where they are kept; kNotFound when the user has no folder of his own.
Result<std::string> contexts_path();
/// None when there is no file. kPermissionDenied for one that others may read.
Result<Contexts> read_contexts();
Status write_contexts(const Contexts& contexts);

}  // namespace drover::cli
