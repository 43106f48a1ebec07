#include "image/registry/docker_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/base64.h"
#include "base/decode.h"
#include "base/text.h"
#include "image/registry/name.h"

namespace drover::image {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxConfig = 1 << 20;
constexpr std::size_t kMaxSecret = 64 << 10;

/// Entries are called "host", "https://host", "https://host/v1/"; Docker Hub is
/// "https://index.docker.io/v1/".
std::string host_of_entry(std::string_view key) {
  for (const std::string_view scheme : {"https://", "http://"})
    if (key.starts_with(scheme)) key.remove_prefix(scheme.size());
  const auto host = lower(key.substr(0, key.find('/')));
  return host == "index.docker.io" || host == "registry-1.docker.io" ? kDockerHub : host;
}

const json* member(const json& object, const char* name) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(name);
  return found == object.end() ? nullptr : &*found;
}

/// "" for what is no text, too long, or could end a header early.
std::string secret(const json& entry, const char* name) {
  const auto* value = member(entry, name);
  if (value == nullptr || !value->is_string()) return "";
  const auto& text = value->get_ref<const std::string&>();
  const bool plain = std::ranges::none_of(text, [](unsigned char c) { return c < ' ' || c == 0x7f; });
  return plain && text.size() <= kMaxSecret ? text : "";
}

RegistryLogin login_of(const json& entry) {
  RegistryLogin login;
  login.user = secret(entry, "username");
  login.password = secret(entry, "password");
  if (const auto pair = decode_base64(secret(entry, "auth")).value_or("");
      pair.find(':') != std::string::npos) {
    login.user = pair.substr(0, pair.find(':'));
    login.password = pair.substr(pair.find(':') + 1);
    while (login.password.ends_with('\0')) login.password.pop_back();  // old clients padded it
  }
  login.identity_token = secret(entry, "identitytoken");
  login.registry_token = secret(entry, "registrytoken");
  return login;
}

/// The entry of a registry in one of the file's tables: by its very name, or one that means the same host.
const json* entry_for(const json& config, const char* table, const std::string& host) {
  const auto* entries = member(config, table);
  if (entries == nullptr || !entries->is_object()) return nullptr;
  if (const auto* exact = member(*entries, host.c_str())) return exact;
  for (const auto& [key, entry] : entries->items())
    if (host_of_entry(key) == host) return &entry;
  return nullptr;
}

std::string helper_note(std::string_view host) {
  return fmt::format(
      "the credentials for '{}' are with a helper program, which Drover does not run: log in "
      "without credsStore and credHelpers in ~/.docker/config.json",
      host);
}

}  // namespace

Result<RegistryLogin> find_login(std::string_view text, const std::string& host) {
  const auto config = text.size() <= kMaxConfig ? parse_json(text, "it")
                                                : Result<json>(fail(ErrorKind::kInvalid, "too large"));
  if (!config || !config->is_object())
    return fail(ErrorKind::kInvalid, "it is not Docker's configuration: a JSON object of at most 1 MiB",
                "log in again with 'docker login', or mend the file");
  if (entry_for(*config, "credHelpers", host) != nullptr) return RegistryLogin{.note = helper_note(host)};
  const auto* entry = entry_for(*config, "auths", host);
  if (entry == nullptr) return RegistryLogin{};
  auto login = login_of(*entry);
  if (login.is_anonymous() && member(*config, "credsStore") != nullptr) login.note = helper_note(host);
  return login;
}

}  // namespace drover::image
