#pragma once

// Who may come in over TCP. Every decision is a pure function of the request's headers and what the
// daemon was configured with; nothing here touches a socket or a file.
//
// TCP has no peer credentials, and loopback is open to every user of the machine, so each request shows a
// secret. A browser may send requests that its user never wished for: `Host` must name this server, which
// stops DNS rebinding, and `Origin`, where a browser sends one, must be this server's own.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "http/listen.h"

namespace drover::api {

/// The name before a secret that is nobody's, and lets whoever shows it read the metrics and do nothing else.
inline constexpr std::string_view kMetricsReader = "@metrics";

/// One line "user:secret" of the credentials file.
struct Credential {
  std::string user;  ///< or kMetricsReader
  std::string secret;

  bool operator==(const Credential&) const = default;
};

/// Empty lines and lines that begin with '#' are skipped. Secrets shorter than 16 characters are refused, and
/// names that begin with '@' but kMetricsReader.
Result<std::vector<Credential>> parse_credentials(std::string_view text);

/// The user, or kMetricsReader, whose secret an `Authorization` header shows: "Bearer SECRET", "Basic
/// base64(user:secret)", or "token=SECRET", which clients of DC/OS send. Takes the same time wherever a wrong
/// secret differs.
std::optional<std::string> authenticate(const std::vector<Credential>& credentials,
                                        std::string_view authorization);

/// Written as `Authorization` is, for who comes through a proxy that takes that one for itself, as the API
/// server of Kubernetes does. No browser sends it unless a page's own script has it.
inline constexpr std::string_view kProxiedAuthorization = "Drover-Authorization";

/// What an `Authorization` header shows as "Bearer TOKEN"; "" when it does not.
std::string_view bearer_token(std::string_view authorization);

using drover::http::ListenAddress;
using drover::http::parse_listen_address;

/// Whether a `Host` header names a server at `address` that goes by `names`: by the address that it listens
/// on, by one of the names, or as localhost. One that listens on all addresses ("0.0.0.0", "::") also goes by
/// any literal address: rebinding needs a name. A port must be the server's; one that is left out is no
/// matter, since a browser leaves it out only when it asks another port than ours.
bool host_allowed(std::string_view host_header, const ListenAddress& address,
                  const std::vector<std::string>& names);

/// Whether a `Host` header names this machine alone, by any port.
bool is_loopback_name(std::string_view host_header);

/// Whether a server may be told to go by this name: letters, digits, '.', '-' and '_', no port.
Status check_host_name(std::string_view name);

/// Whether an `Origin` header is that of a page which came from this very server.
bool origin_allowed(std::string_view origin, std::string_view host_header);

}  // namespace drover::api
