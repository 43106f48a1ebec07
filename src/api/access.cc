#include "api/access.h"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/sha.h>

#include <algorithm>
#include <array>
#include <boost/asio/ip/address.hpp>

#include "base/base64.h"
#include "base/text.h"

namespace drover::api {
namespace {

constexpr std::size_t kMinSecret = 16;

bool is_printable(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](unsigned char c) { return c > 0x20 && c < 0x7f; });
}

/// Compares digests, so that neither the place of a difference nor the length shows in the time it takes.
bool same_secret(std::string_view a, std::string_view b) {
  using Digest = std::array<unsigned char, SHA256_DIGEST_LENGTH>;
  const auto digest = [](std::string_view text) {
    Digest result;
    SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), result.data());
    return result;
  };
  const auto left = digest(a);
  const auto right = digest(b);
  return CRYPTO_memcmp(left.data(), right.data(), left.size()) == 0;
}

/// What follows "`scheme` " in an Authorization header; schemes are case-insensitive (RFC 9110, 11.1).
std::optional<std::string_view> after_scheme(std::string_view header, std::string_view scheme) {
  if (header.size() <= scheme.size() || !equal_without_case(header.substr(0, scheme.size()), scheme) ||
      header[scheme.size()] != ' ')
    return std::nullopt;
  header.remove_prefix(std::min(header.find_first_not_of(' ', scheme.size()), header.size()));
  return header;
}

/// What a header claims; an empty user is any.
struct Claim {
  std::string user;
  std::string secret;
};

std::optional<Claim> read_claim(std::string_view authorization) {
  if (const auto token = after_scheme(authorization, "Bearer")) return Claim{"", std::string(*token)};
  constexpr std::string_view kTokenOfDcos = "token=";
  if (equal_without_case(authorization.substr(0, kTokenOfDcos.size()), kTokenOfDcos))
    return Claim{"", std::string(authorization.substr(kTokenOfDcos.size()))};
  const auto basic = after_scheme(authorization, "Basic");
  const auto pair = basic ? decode_base64(*basic) : std::nullopt;
  const auto colon = pair ? pair->find(':') : std::string::npos;
  if (colon == std::string::npos || colon == 0) return std::nullopt;
  return Claim{pair->substr(0, colon), pair->substr(colon + 1)};
}

bool is_literal_address(std::string_view host) {
  boost::system::error_code error;
  boost::asio::ip::make_address(std::string(host), error);
  return !error;
}

}  // namespace

Result<std::vector<Credential>> parse_credentials(std::string_view text) {
  std::vector<Credential> credentials;
  for (int line_number = 1; !text.empty(); ++line_number) {
    const auto line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (line.empty() || line.starts_with('#')) continue;
    const auto colon = line.find(':');
    const auto bad = [&](std::string_view why) {
      return fail(ErrorKind::kInvalid, fmt::format("line {} {}", line_number, why),
                  "write one 'user:secret' a line");
    };
    if (colon == std::string_view::npos || colon == 0) return bad("is not of the form user:secret");
    Credential credential{std::string(line.substr(0, colon)), std::string(line.substr(colon + 1))};
    if (credential.user.starts_with('@') && credential.user != kMetricsReader)
      return bad(fmt::format("is for '{}', and the only such name is {}", credential.user, kMetricsReader));
    if (credential.secret.size() < kMinSecret)
      return bad(fmt::format("has a secret of fewer than {} characters", kMinSecret));
    if (!is_printable(credential.user) || !is_printable(credential.secret))
      return bad("has characters that are not printable ASCII");
    credentials.push_back(std::move(credential));
  }
  return credentials;
}

std::optional<std::string> authenticate(const std::vector<Credential>& credentials,
                                        std::string_view authorization) {
  const auto claim = read_claim(authorization);
  if (!claim) return std::nullopt;
  std::optional<std::string> user;
  for (const auto& credential : credentials) {
    const bool same = same_secret(credential.secret, claim->secret);
    if (same && (claim->user.empty() || claim->user == credential.user)) user = credential.user;
  }
  return user;
}

std::string_view bearer_token(std::string_view authorization) {
  return after_scheme(authorization, "Bearer").value_or("");
}

bool host_allowed(std::string_view host_header, const ListenAddress& address,
                  const std::vector<std::string>& names) {
  const auto named = http::split_host(host_header, address.port);
  if (!named || named->port != address.port) return false;
  const bool everywhere = address.host == "0.0.0.0" || address.host == "::";
  if (everywhere && is_literal_address(named->host)) return true;
  const auto is_it = [&](std::string_view name) { return equal_without_case(name, named->host); };
  const std::array<std::string_view, 4> always = {address.host, "localhost", "127.0.0.1", "::1"};
  return std::any_of(always.begin(), always.end(), is_it) || std::any_of(names.begin(), names.end(), is_it);
}

bool is_loopback_name(std::string_view host_header) {
  constexpr std::uint16_t kHttp = 80;
  const auto named = http::split_host(host_header, kHttp);
  return named && host_allowed(host_header, {"127.0.0.1", named->port}, {});
}

Status check_host_name(std::string_view name) {
  const auto allowed = [](char c) {
    return (lower(c) >= 'a' && lower(c) <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '_';
  };
  if (!name.empty() && std::all_of(name.begin(), name.end(), allowed)) return {};
  return fail(ErrorKind::kInvalid, fmt::format("'{}' is not the name of a host", name),
              "write it without a port, for example marathon.mesos");
}

bool origin_allowed(std::string_view origin, std::string_view host_header) {
  for (const std::string_view scheme : {"http://", "https://"})
    if (origin.starts_with(scheme)) return equal_without_case(origin.substr(scheme.size()), host_header);
  return false;
}

}  // namespace drover::api
