#include "image/registry/endpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/text.h"
#include "image/registry/name.h"

namespace drover::image {
namespace {

constexpr int kHttpsPort = 443;
constexpr int kHttpPort = 80;

bool is_ipv4(std::string_view host) {
  return !host.empty() &&
         std::ranges::all_of(host, [](char c) { return (c >= '0' && c <= '9') || c == '.'; });
}

bool is_this_machine(std::string_view host) {
  return host == "localhost" || host == "[::1]" || (is_ipv4(host) && host.starts_with("127."));
}

/// Host and port of "host[:port]"; none when that is not well-formed.
std::optional<Origin> origin_of_authority(std::string_view authority, bool secure) {
  Origin origin{secure, "", secure ? kHttpsPort : kHttpPort};
  const auto bracket = authority.starts_with('[') ? authority.find(']') : 0;
  if (bracket == std::string_view::npos) return std::nullopt;
  const auto colon = authority.find(':', bracket);
  origin.host = lower(authority.substr(0, colon));
  if (origin.host.empty() || origin.host.find_first_of("@ \\") != std::string::npos) return std::nullopt;
  if (colon == std::string_view::npos) return origin;
  const auto port = authority.substr(colon + 1);
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), origin.port);
  const bool good = error == std::errc() && end == port.data() + port.size() && origin.port > 0;
  return good && origin.port <= 65535 ? std::optional(origin) : std::nullopt;
}

}  // namespace

std::string Origin::url() const {
  return fmt::format("{}://{}:{}", secure ? "https" : "http", host, port);
}

std::optional<Origin> origin_of(std::string_view url) {
  const auto end = url.find("://");
  if (end == std::string_view::npos) return std::nullopt;
  const auto scheme = lower(url.substr(0, end));
  if (scheme != "http" && scheme != "https") return std::nullopt;
  url.remove_prefix(end + 3);
  return origin_of_authority(url.substr(0, url.find_first_of("/?#")), scheme == "https");
}

bool PlainRegistries::contains(const Origin& origin) const {
  return is_this_machine(origin.host) || named_.contains(origin.host) ||
         named_.contains(fmt::format("{}:{}", origin.host, origin.port));
}

Origin registry_origin(const std::string& host, const PlainRegistries& plain) {
  if (host == kDockerHub) return {true, "registry-1.docker.io", kHttpsPort};
  const auto unsafe = origin_of_authority(host, false);
  if (unsafe && plain.contains(*unsafe)) return *unsafe;
  return origin_of_authority(host, true).value_or(Origin{true, host, kHttpsPort});
}

bool may_go_on(const Origin& from, const Origin& to, const PlainRegistries& plain) {
  return to.secure || (!from.secure && plain.contains(to));
}

bool may_see_login(const Origin& registry, const Origin& realm, const PlainRegistries& plain) {
  if (!may_go_on(registry, realm, plain)) return false;
  if (realm.host == registry.host) return true;
  const auto dot = registry.host.find('.');
  if (dot == std::string::npos || is_ipv4(registry.host) || registry.host.starts_with('[')) return false;
  const auto domain = registry.host.substr(dot);          // ".docker.io"
  if (std::ranges::count(domain, '.') < 2) return false;  // ".com" is nobody's own
  return realm.host == domain.substr(1) || realm.host.ends_with(domain);
}

}  // namespace drover::image
