#include "image/registry/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/pause.h"
#include "base/units.h"
#include "image/digest.h"
#include "image/registry/token.h"
#include "image/text.h"

namespace drover::image {
namespace {

constexpr int kMaxRedirects = 10;
constexpr int kMaxAuthorizations = 3;
constexpr std::size_t kMaxSaid = 64 << 10;
constexpr std::uint64_t kUsefulProgress = 1 << 20;
constexpr int kOk = 200;
constexpr int kPartialContent = 206;
constexpr int kUnauthorized = 401;

constexpr const char* kAcceptManifests =
    "Accept: application/vnd.oci.image.index.v1+json, application/vnd.oci.image.manifest.v1+json, "
    "application/vnd.docker.distribution.manifest.list.v2+json, "
    "application/vnd.docker.distribution.manifest.v2+json";

bool is_good(int status) {
  return status == kOk || status == kPartialContent;
}

bool is_passing(int status) {
  return status == 408 || status == 429 || status >= 500;
}

bool is_passing(const Error& error) {
  return error.kind == ErrorKind::kUnavailable || error.kind == ErrorKind::kTimeout;
}

std::optional<std::chrono::seconds> retry_after(const HttpAnswer& answer) {
  const auto text = answer.header("retry-after");
  int seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error != std::errc() || end != text.data() + text.size() || seconds < 0) return std::nullopt;
  return std::chrono::seconds(seconds);
}

std::string essence(std::string_view content_type) {
  std::string type(content_type.substr(0, content_type.find(';')));
  while (type.ends_with(' ')) type.pop_back();
  return type;
}

Failure wrong_digest(std::string_view what, const std::string& expected, const std::string& found) {
  return fail(ErrorKind::kInvalid,
              fmt::format("the registry sent another {} than it should: its digest is {} and should be {}",
                          what, found, expected),
              "do not use this image: its registry or the way to it is damaged, or somebody changed it");
}

/// Where "bytes 100-199/200" begins.
std::optional<std::uint64_t> range_begin(std::string_view header) {
  constexpr std::string_view kUnit = "bytes ";
  if (!header.starts_with(kUnit)) return std::nullopt;
  header.remove_prefix(kUnit.size());
  std::uint64_t begin = 0;
  if (std::from_chars(header.data(), header.data() + header.size(), begin).ec != std::errc())
    return std::nullopt;
  return begin;
}

}  // namespace

RegistrySession::RegistrySession(RegistryName name, RegistryLogin login, PlainRegistries plain,
                                 RegistryCertificates certificates, RegistryLimits limits,
                                 std::stop_token stop)
    : name_(std::move(name)),
      login_(std::move(login)),
      plain_(std::move(plain)),
      certificates_(std::move(certificates)),
      limits_(limits),
      stop_(std::move(stop)),
      origin_(registry_origin(name_.host, plain_)) {}

bool RegistrySession::used_login() const {
  const std::lock_guard lock(mutex_);
  return used_login_;
}

Result<RegistryDocument> RegistrySession::manifest(HttpClient& client, const std::string& version) {
  RegistryDocument document;
  const auto take = [&](const HttpAnswer&, std::string_view piece) -> Status {
    document.text += piece;
    return {};
  };
  const auto headers = [&] {
    document.text.clear();
    return std::vector<std::string>{kAcceptManifests};
  };
  const HttpLimits limits{kMaxDocument, limits_.document, limits_.stall};
  DROVER_TRY(const auto answer,
             get(client, {"manifests/" + version, headers, [] { return 0; }, limits, take}));
  auto& descriptor = document.descriptor;
  descriptor.digest = sha256_of(document.text);
  descriptor.size = document.text.size();
  const auto told = answer.header("docker-content-digest");
  for (const auto& expected : {version, told})
    if (digest_hex(expected) && expected != descriptor.digest)
      return wrong_digest("manifest", expected, descriptor.digest);
  DROVER_TRY(descriptor.media_type,
             type_of_document(document.text, essence(answer.header("content-type")), "its manifest"));
  return document;
}

Result<std::string> RegistrySession::small_blob(HttpClient& client, const Descriptor& blob) {
  if (blob.size > kMaxDocument)
    return fail(ErrorKind::kInvalid,
                fmt::format("its configuration is larger than {}, the most that it may be",
                            format_bytes(kMaxDocument)));
  std::string text;
  BlobSink sink{0, [&](std::string_view piece) -> Status {
                  text += piece;
                  return {};
                }};
  DROVER_CHECK_OK(this->blob(client, blob, sink));
  const auto found = sha256_of(text);
  if (found != blob.digest) return wrong_digest("configuration", blob.digest, found);
  return text;
}

Status RegistrySession::blob(HttpClient& client, const Descriptor& blob, BlobSink& sink) {
  std::uint64_t here = 0;  // where the next byte of this answer stands
  bool began = false;
  const auto take = [&](const HttpAnswer& head, std::string_view piece) -> Status {
    if (!began && head.status == kPartialContent) {
      const auto begin = range_begin(head.header("content-range"));
      if (begin != sink.offset) return fail(ErrorKind::kInvalid, "the registry answers with another part");
      here = *begin;
    }
    began = true;
    const auto known = std::min<std::uint64_t>(sink.offset - here, piece.size());  // it sends all of it again
    here += piece.size();
    piece.remove_prefix(known);
    if (piece.size() > blob.size - sink.offset)
      return fail(
          ErrorKind::kInvalid,
          fmt::format("the registry sends more than the {} that its manifest says", format_bytes(blob.size)));
    if (piece.empty()) return {};
    DROVER_CHECK_OK(sink.take(piece));
    sink.offset += piece.size();
    return {};
  };
  const auto headers = [&] {
    began = false;
    here = 0;
    return sink.offset == 0 ? std::vector<std::string>{}
                            : std::vector{fmt::format("Range: bytes={}-", sink.offset)};
  };
  const HttpLimits limits{
      blob.size + sink.offset + 1, limits_.blob, limits_.stall, limits_.slowest, limits_.window,
      limits_.least_in_window};
  bool ended_early = false;
  while (sink.offset < blob.size || blob.size == 0) {
    DROVER_TRY(const auto answer,
               get(client, {"blobs/" + blob.digest, headers, [&] { return sink.offset; }, limits, take}));
    if (sink.offset == blob.size) return {};
    if (ended_early)
      return fail(ErrorKind::kInvalid,
                  fmt::format("the registry sends only {} of {}", sink.offset, blob.size));
    ended_early = true;
  }
  return {};
}

Result<RegistrySession::Answer> RegistrySession::get(HttpClient& client, const Ask& ask) {
  const auto deadline = std::chrono::steady_clock::now() + ask.limits.duration;
  Backoff backoff(limits_.first_pause, limits_.longest_pause, std::random_device()());
  auto useful = ask.progress();
  for (int tried = 1;; ++tried) {
    auto answer = attempt(client, ask);
    if (stopped()) return fail(ErrorKind::kUnavailable, "it was stopped");
    if (answer && is_good(answer->status)) return answer;
    const bool passing = answer ? is_passing(answer->status) : is_passing(answer.error());
    auto next = backoff.next();
    if (answer)
      next =
          std::max<std::chrono::milliseconds>(next, retry_after(*answer).value_or(std::chrono::seconds(0)));
    next = std::min<std::chrono::milliseconds>(next, limits_.longest_pause);
    if (ask.progress() >= useful + kUsefulProgress) {
      useful = ask.progress();
      tried = 0;
      backoff.reset();
    }
    if (!passing || tried >= limits_.attempts || std::chrono::steady_clock::now() + next > deadline) {
      if (!answer) return answer;
      return Failure(status_error(*answer, answer->said));
    }
    if (!pause(next, stop_)) return fail(ErrorKind::kUnavailable, "it was stopped");
  }
}

Result<RegistrySession::Answer> RegistrySession::attempt(HttpClient& client, const Ask& ask) {
  for (int authorizations = 0;; ++authorizations) {
    std::string used;
    {
      const std::lock_guard lock(mutex_);
      used = authorization_;
    }
    DROVER_TRY(auto answer, follow(client, ask, used));
    if (answer.status != kUnauthorized || authorizations == kMaxAuthorizations) return answer;
    const bool again = [&] {  // another thread may have been faster
      const std::lock_guard lock(mutex_);
      return authorization_ != used;
    }();
    if (again) continue;
    if (!used.empty() && authorizations > 0) return answer;  // what was just got is not enough
    DROVER_CHECK_OK(authorize(client, answer, used));
  }
}

Result<RegistrySession::Answer> RegistrySession::follow(HttpClient& client, const Ask& ask,
                                                        const std::string& authorization) {
  HttpRequest request{.url = fmt::format("{}/v2/{}/{}", origin_.url(), name_.repository, ask.path),
                      .headers = ask.headers(),
                      .follow_redirects = false,
                      .limits = ask.limits};
  const auto headers = request.headers;
  std::string said;
  if (!authorization.empty()) request.headers.push_back("Authorization: " + authorization);
  const auto body = [&](const HttpAnswer& head, std::string_view piece) -> Status {
    if (is_good(head.status)) return ask.body(head, piece);
    if (said.size() + piece.size() > kMaxSaid)
      return fail(ErrorKind::kInvalid, fmt::format("the registry answered {} and does not stop talking",
                                                   http_status_text(head.status)));
    said += piece;
    return {};
  };
  auto from = origin_;
  for (int redirects = 0; redirects <= kMaxRedirects; ++redirects) {
    said.clear();
    DROVER_TRY(auto answer, perform(client, request, from, body));
    if (answer.redirect.empty() || answer.status / 100 != 3)
      return Answer{std::move(answer), std::move(said)};
    const auto to = origin_of(answer.redirect);
    if (!to || !may_go_on(from, *to, plain_))
      return fail(ErrorKind::kPermissionDenied,
                  fmt::format("the registry leads on to '{}', which is refused: only https is followed",
                              printable(answer.redirect.substr(0, answer.redirect.find('?')))));
    request.url = answer.redirect;
    request.headers = headers;
    if (*to == origin_ && !authorization.empty())
      request.headers.push_back("Authorization: " + authorization);
    from = *to;
  }
  return fail(ErrorKind::kInvalid, fmt::format("the registry leads on more than {} times", kMaxRedirects));
}

Result<HttpAnswer> RegistrySession::perform(HttpClient& client, HttpRequest& request, const Origin& server,
                                            const HttpClient::Body& body) const {
  DROVER_TRY(request.trust, certificates_.find(server));
  const auto go_on = [&](const HttpAnswer&, std::uint64_t, std::uint64_t) -> Status {
    if (stopped()) return fail(ErrorKind::kUnavailable, "it was stopped");
    return {};
  };
  auto answer = client.perform(request, body, go_on);
  if (!answer && answer.error().kind == ErrorKind::kPermissionDenied) {  // only certificates are refused here
    auto& error = answer.error();
    error.message =
        fmt::format("the certificate of '{}:{}' is not trusted: {}", server.host, server.port, error.message);
    error.hint = certificates_.remedy(server);
  }
  return answer;
}

Status RegistrySession::authorize(HttpClient& client, const Answer& refusal, const std::string& used) {
  const auto challenges = parse_challenges(refusal.header("www-authenticate"));
  const auto asks_for = [&](std::string_view scheme) {
    return std::ranges::find(challenges, scheme, &Challenge::scheme);
  };
  std::string got;
  bool with_login = true;
  if (!login_.registry_token.empty()) {
    got = "Bearer " + login_.registry_token;
  } else if (const auto bearer = asks_for("bearer"); bearer != challenges.end()) {
    DROVER_TRY(const auto token, fetch_token(client, *bearer));
    got = "Bearer " + token;
    const std::lock_guard lock(mutex_);
    with_login = !login_.is_anonymous() && !login_kept_back_;
  } else if (asks_for("basic") != challenges.end() && !login_.user.empty()) {
    got = basic_authorization(login_);
  } else {
    return Failure(status_error(refusal, refusal.said));
  }
  const std::lock_guard lock(mutex_);
  if (authorization_ == used) authorization_ = std::move(got);
  used_login_ = used_login_ || with_login;
  return {};
}

Result<HttpRequest> RegistrySession::token_request(const Challenge& challenge) {
  const auto value = [&](const char* name) {
    const auto found = challenge.parameters.find(name);
    return found == challenge.parameters.end() ? std::string() : found->second;
  };
  const auto realm = value("realm");
  const auto server = origin_of(realm);
  if (!server || !may_go_on(origin_, *server, plain_))
    return fail(
        ErrorKind::kPermissionDenied,
        fmt::format("the registry names '{}' as its token server, which is refused: it must have https",
                    printable(realm.substr(0, realm.find('?')))));
  const bool shown = may_see_login(origin_, *server, plain_);
  {
    const std::lock_guard lock(mutex_);
    login_kept_back_ = !shown && !login_.is_anonymous();
  }
  return make_token_request(realm, value("service"), name_.repository, shown ? login_ : RegistryLogin{});
}

Result<std::string> RegistrySession::fetch_token(HttpClient& client, const Challenge& challenge) {
  DROVER_TRY(auto request, token_request(challenge));
  request.limits = {kMaxToken, limits_.document, limits_.stall};
  std::string text;
  const auto body = [&](const HttpAnswer&, std::string_view piece) -> Status {
    text += piece;
    return {};
  };
  const auto server = origin_of(request.url);
  const auto answer = perform(client, request, server.value_or(origin_), body);
  if (!answer) return Failure(context(answer.error(), "the registry's token server"));
  if (answer->status == kOk) return read_token(text);
  auto error = status_error(*answer, text);
  error.message = fmt::format("the registry's token server answered {}", http_status_text(answer->status));
  return Failure(std::move(error));
}

Error RegistrySession::status_error(const HttpAnswer& answer, std::string_view said) const {
  const auto told = registry_message(said);
  const auto because = told.empty() ? "" : ": " + told;
  if (answer.status == kUnauthorized || answer.status == 403) {
    auto hint = login_.note;
    if (hint.empty() && login_.is_anonymous())
      hint = fmt::format("check the name; if it needs an account, log in with 'docker login{}'",
                         name_.host == kDockerHub ? "" : " " + name_.host);
    const std::lock_guard lock(mutex_);
    if (login_kept_back_)
      hint = "its token server is of another domain, so your credentials were not shown to it";
    return {
        ErrorKind::kPermissionDenied,
        fmt::format("the registry denies access to '{}', or has no such image{}", name_.repository, because),
        hint, ""};
  }
  if (answer.status == 404 || answer.status == 410)
    return {ErrorKind::kNotFound,
            fmt::format("the registry has no such image: it answered {}{}", http_status_text(answer.status),
                        because),
            "check its name and tag", ""};
  return {ErrorKind::kUnavailable,
          fmt::format("the registry answered {}{}", http_status_text(answer.status), because), "", ""};
}

}  // namespace drover::image
