#pragma once

// Where a registry is spoken to, and where what is said to it may go. Pure; thread safe.

#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace drover::image {

/// scheme, host and port of a URL: what credentials are bound to (RFC 6454).
struct Origin {
  bool secure = true;
  std::string host;  ///< lower case; IPv6 in brackets
  int port = 443;

  bool operator==(const Origin&) const = default;
  std::string url() const;  ///< "https://host:443"
};

/// None for what is neither http nor https, and for URLs with a user in them.
std::optional<Origin> origin_of(std::string_view url);

/// Registries that are spoken to without TLS: those of this machine, and those that its operator names, as
/// "HOST" (whatever its port) or "HOST:PORT".
class PlainRegistries {
 public:
  explicit PlainRegistries(std::set<std::string> named = {}) : named_(std::move(named)) {}
  bool contains(const Origin& origin) const;

 private:
  std::set<std::string> named_;
};

/// `host` as in RegistryName; Docker Hub's is another machine than its name says.
Origin registry_origin(const std::string& host, const PlainRegistries& plain);

/// Whether a request that began at `from` may go on at `to`: never from TLS to a plain connection, and
/// plainly only to registries that are plain.
bool may_go_on(const Origin& from, const Origin& to, const PlainRegistries& plain);

/// Whether the credentials of a registry may be shown to the token server that it names: over TLS (or as
/// plainly as to the registry itself), and to the same host or one of the same domain
/// ("registry-1.docker.io" and "auth.docker.io").
bool may_see_login(const Origin& registry, const Origin& realm, const PlainRegistries& plain);

}  // namespace drover::image
