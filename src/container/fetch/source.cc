#include "container/fetch/source.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/url/parse.hpp>
#include <boost/url/url_view.hpp>

#include "base/text.h"

namespace drover::container {
namespace {

constexpr std::size_t kMaxUri = 4096;
constexpr std::size_t kMaxName = 255;

bool printable(std::string_view text) {
  return std::none_of(text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; });
}

Failure refusal(const std::string& shown, std::string_view why, std::string hint = "") {
  return fail(ErrorKind::kInvalid, fmt::format("Cannot fetch '{}': {}", shown, why), std::move(hint));
}

Result<Source> remote_source(const std::string& uri, const boost::urls::url_view& url) {
  Source source;
  source.place = uri;
  source.shown = fmt::format("{}://{}{}", std::string(url.scheme()), std::string(url.encoded_host_and_port()),
                             std::string(url.encoded_path()));
  if (url.host().empty()) return refusal(source.shown, "it names no host");
  const auto parts = url.segments();
  if (!parts.empty()) source.target = parts.back();
  return source;
}

/// What is shown of a text that cannot be read as a URI, but may be meant as one with a password in it.
std::string redacted(std::string_view uri) {
  constexpr std::size_t kShown = 80;
  uri = uri.substr(0, uri.find('?'));
  const auto secret_end = uri.rfind('@');
  if (secret_end == std::string_view::npos) return std::string(uri.substr(0, kShown));
  const auto scheme_end = uri.find("://");
  const auto scheme = scheme_end < secret_end ? uri.substr(0, scheme_end + 3) : std::string_view();
  return std::string(scheme) + std::string(uri.substr(secret_end + 1, kShown));
}

Result<Source> local_source(const std::string& path) {
  Source source;
  source.local = true;
  source.place = source.shown = path;
  source.target = path.substr(path.rfind('/') + 1);
  return source;
}

Result<Source> placed(const std::string& uri) {
  if (uri.starts_with('/')) return local_source(uri);
  const auto url = boost::urls::parse_uri(uri);
  const auto shown = redacted(uri);
  if (!url) return refusal(shown, "it is no URI", "write http://…, https://…, file:///… or an absolute path");
  const auto scheme = lower(url->scheme());
  if (scheme == "http" || scheme == "https") return remote_source(uri, *url);
  if (scheme != "file")
    return refusal(shown, fmt::format("'{}' is not supported", scheme),
                   "http, https and file are; other stores mostly have an https address too");
  const auto host = url->host();
  if (!host.empty() && lower(host) != "localhost")
    return refusal(shown, fmt::format("it lies on '{}'", host), "file URIs are of the task's own machine");
  const auto path = url->path();
  if (path.find('\0') != std::string::npos) return refusal(shown, "its path is not valid");
  return local_source(path);
}

}  // namespace

Result<std::string> inner_path(std::string_view path) {
  if (path.starts_with('/')) return fail(ErrorKind::kInvalid, "it is absolute");
  std::string result;
  while (!path.empty()) {
    const auto slash = std::min(path.find('/'), path.size());
    const auto name = path.substr(0, slash);
    path.remove_prefix(std::min(slash + 1, path.size()));
    if (name.empty() || name == ".") continue;
    if (name == "..") return fail(ErrorKind::kInvalid, "it has '..' in it");
    if (name.size() > kMaxName) return fail(ErrorKind::kInvalid, "a name in it is too long");
    if (name.find('\0') != std::string_view::npos) return fail(ErrorKind::kInvalid, "it is not a valid path");
    result += (result.empty() ? "" : "/") + std::string(name);
  }
  if (result.empty()) return fail(ErrorKind::kInvalid, "it names nothing");
  return result;
}

Result<Source> source_of(const workload::Fetch& fetch) {
  if (fetch.uri.size() > kMaxUri || !printable(fetch.uri))
    return refusal(redacted(fetch.uri.substr(0, 40)), "it is no URI",
                   "write http://…, https://… or file:///…");
  DROVER_TRY(auto source, placed(fetch.uri));
  if (fetch.output_file.empty()) {
    const auto& name = source.target;
    if (name.empty() || name == "." || name == ".." || name.find('/') != std::string::npos ||
        name.find('\0') != std::string::npos || name.size() > kMaxName)
      return refusal(source.shown, "its path does not end in the name of a file", "give it an output_file");
  } else {
    const auto path = inner_path(fetch.output_file);
    if (!path)
      return refusal(source.shown,
                     fmt::format("output_file '{}': {}", fetch.output_file, path.error().message),
                     "name a path inside of the sandbox");
    source.target = *path;
  }
  for (const std::string_view log : {"stdout", "stderr"})
    if (source.target == log)
      return refusal(source.shown, fmt::format("'{}' is where the task's output goes", log),
                     "give it another output_file");
  return source;
}

ArchiveKind archive_kind(std::string_view name) {
  constexpr std::array kArchives = {".tar", ".tgz",    ".tar.gz", ".tbz2",    ".tar.bz2",
                                    ".txz", ".tar.xz", ".tzst",   ".tar.zst", ".zip"};
  const auto plain = lower(name);
  const auto ends = [&](std::string_view ending) {
    return plain.size() > ending.size() && plain.ends_with(ending);
  };
  if (std::any_of(kArchives.begin(), kArchives.end(), ends)) return ArchiveKind::kArchive;
  return ends(".gz") ? ArchiveKind::kGzip : ArchiveKind::kNone;
}

}  // namespace drover::container
