#include "image/registry/name.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "image/digest.h"
#include "image/text.h"

namespace drover::image {
namespace {

constexpr std::size_t kLongestName = 255;  // host and repository, as registries have it
constexpr std::size_t kLongestTag = 128;
constexpr std::string_view kLibrary = "library/";

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_lower(char c) {
  return (c >= 'a' && c <= 'z') || is_digit(c);
}

bool is_word(char c) {
  return is_lower(c) || (c >= 'A' && c <= 'Z') || c == '_';
}

/// Letters and digits, with '.', '_', '__' or any number of '-' between them.
bool is_component(std::string_view text) {
  if (text.empty() || !is_lower(text.front()) || !is_lower(text.back())) return false;
  for (std::size_t i = 0; i < text.size();) {
    if (is_lower(text[i])) {
      ++i;
      continue;
    }
    const auto end = std::min(text.find_first_not_of(text[i], i), text.size());
    const auto most = text[i] == '.' ? 1 : text[i] == '_' ? 2 : text[i] == '-' ? text.size() : 0;
    if (end - i > most || !is_lower(text[end])) return false;  // there is one more: the last is a letter
    i = end;
  }
  return true;
}

bool is_repository(std::string_view text) {
  while (true) {
    const auto slash = text.find('/');
    if (!is_component(text.substr(0, slash))) return false;
    if (slash == std::string_view::npos) return true;
    text.remove_prefix(slash + 1);
  }
}

bool is_tag(std::string_view text) {
  return !text.empty() && text.size() <= kLongestTag && is_word(text.front()) &&
         std::ranges::all_of(text, [](char c) { return is_word(c) || c == '.' || c == '-'; });
}

bool is_host_label(std::string_view text) {
  const auto plain = [](char c) { return is_word(c) && c != '_'; };
  return !text.empty() && plain(text.front()) && plain(text.back()) &&
         std::ranges::all_of(text, [&](char c) { return plain(c) || c == '-'; });
}

bool is_port(std::string_view text) {
  unsigned port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return error == std::errc() && end == text.data() + text.size() && port > 0 && port <= 65535;
}

/// A name or address, and a port or none; IPv6 addresses stand in brackets.
bool is_host(std::string_view text) {
  if (text.starts_with('[')) {
    const auto end = text.find(']');
    if (end == std::string_view::npos || end < 3) return false;
    const auto address = text.substr(1, end - 1);
    const bool plain = std::ranges::all_of(
        address, [](char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || c == ':' || c == '.'; });
    const auto rest = text.substr(end + 1);
    return plain && (rest.empty() || (rest.front() == ':' && is_port(rest.substr(1))));
  }
  const auto colon = text.find(':');
  if (colon != std::string_view::npos && !is_port(text.substr(colon + 1))) return false;
  auto name = text.substr(0, colon);
  while (true) {
    const auto dot = name.find('.');
    if (!is_host_label(name.substr(0, dot))) return false;
    if (dot == std::string_view::npos) return true;
    name.remove_prefix(dot + 1);
  }
}

/// The first part is a host where it could be nothing else.
bool looks_like_host(std::string_view part) {
  return part == "localhost" || part.find_first_of(".:") != std::string_view::npos;
}

std::string lower_case(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return result;
}

Failure no_name(std::string_view text, std::string_view why) {
  return fail(ErrorKind::kInvalid,
              fmt::format("Image '{}' is no name of a registry: {}", printable(text), why),
              "names look like 'redis:7' or 'registry.example.com:5000/team/tool:1.0'");
}

}  // namespace

std::string RegistryName::canonical() const {
  return whole_repository() + (tag.empty() ? "" : ":" + tag) + (digest.empty() ? "" : "@" + digest);
}

std::string RegistryName::familiar() const {
  auto name = canonical();
  const auto leave_out = [&](std::string_view prefix) {
    if (name.starts_with(prefix)) name.erase(0, prefix.size());
  };
  if (host == kDockerHub) {
    leave_out("docker.io/");
    if (std::ranges::count(repository, '/') == 1) leave_out(kLibrary);
  }
  return name;
}

Result<RegistryName> parse_registry_name(std::string_view text) {
  RegistryName name;
  auto rest = text;
  if (const auto at = rest.find('@'); at != std::string_view::npos) {
    name.digest = rest.substr(at + 1);
    if (!digest_hex(name.digest)) return no_name(text, "what follows '@' is not a sha256 digest");
    rest = rest.substr(0, at);
  }
  if (const auto colon = rest.rfind(':');
      colon != std::string_view::npos && rest.find('/', colon) == std::string_view::npos) {
    name.tag = rest.substr(colon + 1);
    if (!is_tag(name.tag)) return no_name(text, "its tag is not valid");
    rest = rest.substr(0, colon);
  }
  if (name.tag.empty() && name.digest.empty()) name.tag = "latest";
  const auto slash = rest.find('/');
  if (slash != std::string_view::npos && looks_like_host(rest.substr(0, slash))) {
    name.host = lower_case(rest.substr(0, slash));
    rest.remove_prefix(slash + 1);
    if (!is_host(name.host)) return no_name(text, "its host is not valid");
  }
  if (name.host.empty() || name.host == "index.docker.io" || name.host == "registry-1.docker.io")
    name.host = kDockerHub;
  name.repository = rest;
  if (!is_repository(rest))
    return no_name(text,
                   "a path consists of lower-case letters and digits, with single '.', '_' or '-' between");
  if (name.host == kDockerHub && name.repository.find('/') == std::string::npos)
    name.repository.insert(0, kLibrary);
  if (name.whole_repository().size() > kLongestName) return no_name(text, "it is too long");
  return name;
}

}  // namespace drover::image
