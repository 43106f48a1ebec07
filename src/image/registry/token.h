#pragma once

// What is said to token servers and what they and registries answer (distribution/spec/auth/token.md and
// oauth.md; errors: distribution-spec, "Error Codes"). Pure; thread safe.

#include <string>
#include <string_view>

#include "base/http_client.h"
#include "base/result.h"
#include "image/registry/docker_config.h"

namespace drover::image {

inline constexpr std::uint64_t kMaxToken = 1 << 20;  ///< of the whole answer

/// "Basic …"
std::string basic_authorization(const RegistryLogin& login);

/// Asks for the right to pull this repository and for nothing else, whatever the registry would like. No
/// redirect is followed: credentials stay where they are sent.
HttpRequest make_token_request(const std::string& realm, const std::string& service,
                               const std::string& repository, const RegistryLogin& login);

/// The token of an answer; refused where it could not stand in a header.
Result<std::string> read_token(std::string_view answer);

/// What the body of a registry's refusal says, fit for a message; "" when it says nothing.
std::string registry_message(std::string_view body);

}  // namespace drover::image
