#include "image/registry/token.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/base64.h"
#include "base/decode.h"
#include "image/text.h"

namespace drover::image {
namespace {

using nlohmann::json;

std::string encoded(std::string_view text) {
  std::string result;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '.' || c == '_' || c == '~';
    result += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return result;
}

std::string text_at(const json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

}  // namespace

std::string basic_authorization(const RegistryLogin& login) {
  return "Basic " + encode_base64(login.user + ":" + login.password);
}

HttpRequest make_token_request(const std::string& realm, const std::string& service,
                               const std::string& repository, const RegistryLogin& login) {
  HttpRequest request;
  request.follow_redirects = false;
  auto fields = fmt::format("scope={}", encoded(fmt::format("repository:{}:pull", repository)));
  if (!service.empty()) fields += "&service=" + encoded(service);
  const auto address = realm.substr(0, realm.find('#'));
  if (!login.identity_token.empty()) {
    request.url = address;
    request.method = "POST";
    request.content = {"application/x-www-form-urlencoded",
                       fmt::format("grant_type=refresh_token&client_id=drover&refresh_token={}&{}",
                                   encoded(login.identity_token), fields)};
    return request;
  }
  request.url = address + (address.find('?') == std::string::npos ? "?" : "&") + fields;
  if (!login.user.empty()) request.headers.push_back("Authorization: " + basic_authorization(login));
  return request;
}

Result<std::string> read_token(std::string_view answer) {
  const auto document = parse_json(answer, "the answer");
  std::string token;
  if (document && document->is_object()) {
    token = text_at(*document, "token");
    if (token.empty()) token = text_at(*document, "access_token");
  }
  const bool fits = !token.empty() && token.size() <= (64 << 10) &&
                    std::ranges::all_of(token, [](char c) { return c > ' ' && c <= '~'; });
  if (fits) return token;
  return fail(ErrorKind::kInvalid, "the registry's token server answered without a usable token");
}

std::string registry_message(std::string_view body) {
  const auto document = parse_json(body, "the answer");
  if (!document || !document->is_object()) return "";
  const auto errors = document->find("errors");
  if (errors == document->end() || !errors->is_array() || errors->empty()) return "";
  const auto& first = errors->front();
  return first.is_object() ? printable(text_at(first, "message")) : "";
}

}  // namespace drover::image
