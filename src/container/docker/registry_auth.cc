#include "container/docker/registry_auth.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/base64.h"
#include "base/json_text.h"
#include "image/registry/name.h"

namespace drover::container::docker {
namespace {

constexpr const char* kDockerHubEntry = "https://index.docker.io/v1/";

}  // namespace

std::string registry_auth(const image::RegistryLogin& login, const std::string& host) {
  if (login.is_anonymous()) return "";
  nlohmann::json shown = {{"serveraddress", host == image::kDockerHub ? kDockerHubEntry : host}};
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) shown[name] = value;
  };
  add("username", login.user);
  add("password", login.password);
  add("identitytoken", login.identity_token);
  add("registrytoken", login.registry_token);
  auto text = encode_base64(to_text(shown));
  std::ranges::replace(text, '+', '-');  // RFC 4648, section 5: safe in URLs
  std::ranges::replace(text, '/', '_');
  return text;
}

}  // namespace drover::container::docker
