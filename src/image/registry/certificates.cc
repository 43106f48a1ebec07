#include "image/registry/certificates.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/files.h"

namespace drover::image {
namespace {

constexpr std::uint64_t kMaxFile = 1 << 20;
constexpr std::size_t kMaxFiles = 100;

/// A server's name comes from strangers, and becomes the name of a folder here.
bool is_plain(const std::string& host) {
  return !host.starts_with('.') && std::ranges::all_of(host, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '.' || c == '-' || c == '_' || c == ':' || c == '[' || c == ']';
  });
}

std::vector<std::string> names_of(const Origin& server) {
  std::vector<std::string> names = {fmt::format("{}:{}", server.host, server.port)};
  constexpr int kHttps = 443;
  if (server.port == kHttps) names.push_back(server.host);
  return names;
}

Result<HttpTrust> read_folder(const std::string& path, const std::vector<std::string>& names) {
  HttpTrust trust;
  std::size_t count = 0;
  for (const auto& name : names) {
    if (!name.ends_with(".crt") && !name.ends_with(".cert")) continue;
    if (++count > kMaxFiles)
      return fail(ErrorKind::kInvalid,
                  fmt::format("there are more than {} certificates in '{}'", kMaxFiles, path));
    DROVER_TRY(const auto text, read_file(path + "/" + name, kMaxFile));
    if (name.ends_with(".crt")) {
      trust.authorities += text + "\n";
    } else if (trust.certificate.empty()) {
      trust.certificate = text;
      const auto key = name.substr(0, name.size() - std::string_view(".cert").size()) + ".key";
      DROVER_TRY(trust.key, read_file(path + "/" + key, kMaxFile));
    }
  }
  return trust;
}

}  // namespace

Result<std::shared_ptr<const HttpTrust>> RegistryCertificates::find(const Origin& server) const {
  if (!server.secure || !is_plain(server.host)) return nullptr;
  for (const auto& folder : folders_)
    for (const auto& name : names_of(server)) {
      const auto path = folder + "/" + name;
      const auto opened = Directory::open(path);
      if (!opened) continue;
      DROVER_TRY(const auto names, opened->list());
      auto trust = read_folder(path, names);
      if (!trust) return Failure(context(trust.error(), fmt::format("the certificates in '{}'", path)));
      return std::make_shared<const HttpTrust>(std::move(*trust));
    }
  return nullptr;
}

std::string RegistryCertificates::remedy(const Origin& server) const {
  if (folders_.empty()) return "the machine must trust the authority that signed it";
  return fmt::format("if it is the right one, put its authority's certificate into '{}/{}/ca.crt'",
                     folders_.front(), names_of(server).back());
}

}  // namespace drover::image
