#pragma once

// Credentials out of Docker's configuration file, ~/.docker/config.json, as `docker login`, `podman login
// --compat-auth-file` and others write it. Pure; thread safe. No message ever quotes the file: it holds
// passwords.

#include <string>
#include <string_view>

#include "base/result.h"

namespace drover::image {

/// What a user shows a registry. Nothing at all is fine too: many images are for everybody.
struct RegistryLogin {
  std::string user;
  std::string password;
  std::string identity_token;  ///< to be exchanged for others (OAuth 2 refresh token)
  std::string registry_token;  ///< a bearer token as it is
  /// Why there is none although the file speaks of the registry, as a hint: the credentials are with a helper
  /// program. "" when there is nothing to say.
  std::string note;

  bool is_anonymous() const { return user.empty() && identity_token.empty() && registry_token.empty(); }
};

/// `host` as in RegistryName. No entry for it gives an anonymous login.
Result<RegistryLogin> find_login(std::string_view config, const std::string& host);

}  // namespace drover::image
