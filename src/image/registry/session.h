#pragma once

// One user's talk with one registry about one repository (OCI distribution-spec; tokens as in
// distribution/spec/auth). Registries are strangers: every answer has a limit, redirects and token servers
// are followed only where endpoint.h allows it, and what the user shows goes to the registry alone and to a
// token server of its own domain. No secret is part of any message. Thread safe; each thread brings a
// HttpClient. Blocks; a stop request ends it soon.

#include <chrono>
#include <functional>
#include <mutex>
#include <stop_token>
#include <string>
#include <vector>

#include "base/http_client.h"
#include "base/result.h"
#include "image/document.h"
#include "image/registry/certificates.h"
#include "image/registry/challenge.h"
#include "image/registry/docker_config.h"
#include "image/registry/endpoint.h"
#include "image/registry/name.h"

namespace drover::image {

struct RegistryLimits {
  int attempts = 6;                            ///< in a row without progress
  std::chrono::milliseconds first_pause{250};  ///< between them, each twice as long
  std::chrono::seconds longest_pause{30};      ///< also of what the registry asks for (Retry-After)
  std::chrono::seconds stall{30};              ///< without a byte, or with a blob slower than the next
  std::uint64_t slowest = 1024;                ///< bytes a second
  std::chrono::seconds window{300};            ///< in each such time a blob grows by so many bytes:
  std::uint64_t least_in_window = kLeastInWindow;
  std::chrono::seconds document{120};  ///< for a manifest or a token
  std::chrono::seconds blob{6 * 3600};
};

/// A document with its type and digest.
struct RegistryDocument {
  std::string text;
  Descriptor descriptor;
};

class RegistrySession {
 public:
  RegistrySession(RegistryName name, RegistryLogin login, PlainRegistries plain,
                  RegistryCertificates certificates, RegistryLimits limits, std::stop_token stop);

  /// The manifest or index of a tag or digest; checked against the digest, and the one that the registry
  /// tells.
  Result<RegistryDocument> manifest(HttpClient& client, const std::string& version);
  /// A blob that is small: at most 4 MiB. Checked.
  Result<std::string> small_blob(HttpClient& client, const Descriptor& blob);

  /// Takes the bytes of a blob from `offset` on, which it moves forward.
  struct BlobSink {
    std::uint64_t offset = 0;
    std::function<Status(std::string_view piece)> take;
  };
  /// Until `size` bytes are taken; goes on where a connection broke. Never takes more.
  Status blob(HttpClient& client, const Descriptor& blob, BlobSink& sink);

  /// Whether the user's credentials were needed, as far as is known by now.
  bool used_login() const;
  const RegistryName& name() const { return name_; }
  const Origin& origin() const { return origin_; }
  bool stopped() const { return stop_.stop_requested(); }

 private:
  /// A GET below the repository.
  struct Ask {
    std::string path;
    std::function<std::vector<std::string>()> headers;  ///< asked before every attempt
    std::function<std::uint64_t()> progress;            ///< grows when an attempt was of use
    HttpLimits limits;
    HttpClient::Body body;  ///< of answers 200 and 206
  };
  struct Answer : HttpAnswer {
    std::string said;  ///< the body, when it is a refusal
  };
  /// With as many attempts as it takes; an answer is 200 or 206.
  Result<Answer> get(HttpClient& client, const Ask& ask);
  /// With the authorization that it takes.
  Result<Answer> attempt(HttpClient& client, const Ask& ask);
  /// With the redirects that it takes.
  Result<Answer> follow(HttpClient& client, const Ask& ask, const std::string& authorization);
  /// One request to one server, with the certificates that count there.
  Result<HttpAnswer> perform(HttpClient& client, HttpRequest& request, const Origin& server,
                             const HttpClient::Body& body) const;
  Status authorize(HttpClient& client, const Answer& refusal, const std::string& used);
  Result<std::string> fetch_token(HttpClient& client, const Challenge& challenge);
  Result<HttpRequest> token_request(const Challenge& challenge);
  Error status_error(const HttpAnswer& answer, std::string_view said) const;

  RegistryName name_;
  RegistryLogin login_;
  PlainRegistries plain_;
  RegistryCertificates certificates_;
  RegistryLimits limits_;
  std::stop_token stop_;
  Origin origin_;
  mutable std::mutex mutex_;   ///< of what follows
  std::string authorization_;  ///< value of the header; "" while nothing was asked for
  bool used_login_ = false;
  bool login_kept_back_ = false;  ///< the token server is none to show it to
};

}  // namespace drover::image
