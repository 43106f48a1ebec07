#include "kube/client/config.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

#include "base/files.h"

namespace drover::kube {
namespace {

constexpr std::uint64_t kMostSecret = 1 << 20;

std::string variable(const char* name) {
  const char* value = ::getenv(name);
  return value == nullptr ? "" : value;
}

Result<ServerConfig> read_kubeconfig(const std::string& path, const std::string& wanted) {
  if (path.find(':') != std::string::npos)
    return fail(ErrorKind::kUnsupported, fmt::format("'{}' names more than one kubeconfig", path),
                "put what is needed into one: 'kubectl config view --flatten --minify'");
  DROVER_TRY(const auto text, read_file(path, kMostSecret));
  const auto what = fmt::format("kubeconfig '{}'", path);
  return parse_kubeconfig(text, what, std::filesystem::absolute(path).parent_path(), wanted);
}

Result<ServerConfig> account_of_pod(const ConfigSources& sources) {
  const auto& host = sources.service_host;
  const bool is_ipv6 = host.find(':') != std::string::npos;
  ServerConfig config;
  config.url = fmt::format("https://{}:{}", is_ipv6 ? "[" + host + "]" : host, sources.service_port);
  config.authorities.file = sources.account_folder + "/ca.crt";
  config.token.file = sources.account_folder + "/token";
  config.source = "this pod's ServiceAccount";
  for (const auto& secret : {config.authorities, config.token})
    if (auto read = read_secret(secret); !read) {
      auto error = context(read.error(), config.source);
      error.hint = "set 'automountServiceAccountToken: true' in the pod, or name a kubeconfig";
      return Failure(std::move(error));
    }
  config.name_space = read_secret({.file = sources.account_folder + "/namespace"}).value_or("default");
  return config;
}

}  // namespace

Result<std::string> read_secret(const Secret& secret) {
  if (secret.file.empty()) return secret.text;
  return read_file(secret.file, kMostSecret);
}

ConfigSources ConfigSources::of_environment(std::string named) {
  ConfigSources sources;
  sources.kubeconfig = named.empty() ? variable("KUBECONFIG") : std::move(named);
  sources.service_host = variable("KUBERNETES_SERVICE_HOST");
  sources.service_port = variable("KUBERNETES_SERVICE_PORT");
  return sources;
}

Result<ServerConfig> find_config(const ConfigSources& sources) {
  if (!sources.kubeconfig.empty()) return read_kubeconfig(sources.kubeconfig, sources.context);
  if (!sources.service_host.empty() && !sources.service_port.empty()) return account_of_pod(sources);
  return fail(ErrorKind::kNotFound, "nothing says where the Kubernetes API server is",
              "name a kubeconfig, by --kubeconfig or KUBECONFIG, or run in a pod with a ServiceAccount");
}

}  // namespace drover::kube
