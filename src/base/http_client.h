#pragma once

// HTTP and HTTPS as a client, by libcurl. The library is found at run time: a shim, which is this same
// program, need not load it and all it brings. Certificates are verified; nothing but http and https is ever
// spoken; proxies are those of the environment. An HttpClient keeps its connections open for the next request
// and is used by one thread at a time. Blocks.

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace drover {

struct HttpLimits {
  std::uint64_t bytes = 1ULL << 40;         ///< of the answer's body
  std::chrono::seconds duration{6 * 3600};  ///< of the whole transfer
  std::chrono::seconds stall{60};           ///< without a byte, or slower than the next
  std::uint64_t slowest = 1;                ///< bytes a second
  std::chrono::seconds window{300};
  std::uint64_t least_in_window = 0;  ///< bytes that come in each such time: what drips is given up
};

/// Certificates and keys, as PEM.
struct HttpTrust {
  std::string authorities;  ///< believed beside those that the machine trusts
  std::string certificate;  ///< that the client shows, and its key; "": none
  std::string key;
  bool alone = false;  ///< the authorities are the only ones believed, whatever the machine trusts
};

/// Of a server that is to deliver a file: 10 kB/s over five minutes.
inline constexpr std::uint64_t kLeastInWindow = 3'000'000;

struct HttpContent {
  std::string type;  ///< "application/json"
  std::string bytes;
};

struct HttpRequest {
  std::string url;
  std::vector<std::string> headers = {};  ///< "Name: value"
  std::string method = "GET";
  std::optional<HttpContent> content = {};  ///< what a POST, PUT or PATCH sends
  bool follow_redirects = true;             ///< up to 10, to http and https
  HttpLimits limits = {};
  std::shared_ptr<const HttpTrust> trust = {};  ///< none: what the machine trusts
  /// Else it is sent again on a new connection where a kept one ended before an answer, as one that the
  /// server had closed does. It may have been carried out, though.
  bool send_once = false;
  bool http2 = true;  ///< may be spoken; with one request at a time it only costs
};

struct HttpAnswer {
  int status = 0;
  /// Names in lower case; what comes several times is joined with ", ". Long ones are left out.
  std::map<std::string, std::string> headers;
  std::string redirect;  ///< where a redirect that was not followed leads, as a whole URL

  /// "" when it is not there.
  std::string header(const std::string& name) const;
};

class HttpClient {
 public:
  /// kUnsupported when the machine has no libcurl.
  static Result<HttpClient> create();
  HttpClient(HttpClient&&) noexcept;
  HttpClient& operator=(HttpClient&&) noexcept;
  ~HttpClient();

  /// Hears the body of the last answer piece by piece. An Error ends the transfer and is its outcome.
  using Body = std::function<Status(const HttpAnswer& head, std::string_view piece)>;
  /// Called about once a second, and whenever something came; `total` is 0 when it is not known. An Error
  /// ends the transfer.
  using Progress = std::function<Status(const HttpAnswer& head, std::uint64_t done, std::uint64_t total)>;

  /// An answer of whatever status is a success. Errors are half a sentence: "Could not resolve host: x".
  /// kTimeout, kExhausted (too large), kUnsupported when the library does not know an option that was to
  /// protect the transfer, and kUnavailable for all that may go better another time.
  Result<HttpAnswer> perform(const HttpRequest& request, const Body& body, const Progress& progress = {});
  /// Whether the last request, or a part of it, went out: else it cannot have been carried out.
  bool has_sent() const;

 private:
  struct Handle;
  explicit HttpClient(std::unique_ptr<Handle> handle);
  std::unique_ptr<Handle> handle_;
};

/// "404 (Not Found)".
std::string http_status_text(int status);

}  // namespace drover
