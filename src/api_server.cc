#include "api_server.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "base/text.h"
#include "kube/client/config.h"

namespace drover {

Result<cli::Gateway> api_server_of(const std::string& kubeconfig, const std::string& context) {
  DROVER_TRY(const auto config, kube::find_config({.kubeconfig = kubeconfig, .context = context}));
  cli::Gateway gateway;
  gateway.url = config.url;
  for (const auto& [secret, text] :
       {std::pair(&config.token, &gateway.token), std::pair(&config.authorities, &gateway.authorities),
        std::pair(&config.certificate, &gateway.certificate), std::pair(&config.key, &gateway.key)}) {
    auto read = kube::read_secret(*secret);
    if (!read) return Failure(drover::context(read.error(), config.source));
    *text = trimmed(*read);
    if (text->empty() && !secret->empty())
      return fail(ErrorKind::kInvalid,
                  fmt::format("'{}', which the {} names, is empty", secret->file, config.source));
  }
  if (gateway.token.find_first_of(" \t\r\n") != std::string::npos)
    return fail(ErrorKind::kInvalid, fmt::format("The token of the {} is no token", config.source));
  return gateway;
}

}  // namespace drover
