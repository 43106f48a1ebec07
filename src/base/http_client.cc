#include "base/http_client.h"

#define CURL_DISABLE_TYPECHECK  // its macros know only the functions by name
#include <curl/curl.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>

#include "base/text.h"
#include "base/units.h"

#undef curl_easy_setopt
#undef curl_easy_getinfo

namespace drover {
namespace {

constexpr long kMaxRedirects = 10;
constexpr long kConnectSeconds = 30;
constexpr std::size_t kLongestHeader = 16 << 10;
constexpr std::size_t kMostHeaders = 100;

/// The library's functions, as far as they are used here.
struct Curl {
  decltype(&::curl_easy_init) init = nullptr;
  decltype(&::curl_easy_reset) reset = nullptr;
  decltype(&::curl_easy_setopt) set = nullptr;
  decltype(&::curl_easy_getinfo) get = nullptr;
  decltype(&::curl_easy_perform) perform = nullptr;
  decltype(&::curl_easy_cleanup) cleanup = nullptr;
  decltype(&::curl_easy_strerror) describe = nullptr;
  decltype(&::curl_slist_append) append = nullptr;
  decltype(&::curl_slist_free_all) free_list = nullptr;
  decltype(&::curl_easy_option_by_id) option = nullptr;  ///< not in libraries before 7.73
};

template <typename Function>
bool find_function(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  return function != nullptr;
}

Result<Curl> load_curl() {
  void* library = nullptr;
  for (const char* name : {"libcurl.so.4", "libcurl-gnutls.so.4", "libcurl.so"})
    if (library == nullptr) library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
  decltype(&::curl_global_init) start = nullptr;
  Curl curl;
  if (library == nullptr || !find_function(library, "curl_global_init", start) ||
      !find_function(library, "curl_easy_init", curl.init) ||
      !find_function(library, "curl_easy_reset", curl.reset) ||
      !find_function(library, "curl_easy_setopt", curl.set) ||
      !find_function(library, "curl_easy_getinfo", curl.get) ||
      !find_function(library, "curl_easy_perform", curl.perform) ||
      !find_function(library, "curl_easy_cleanup", curl.cleanup) ||
      !find_function(library, "curl_easy_strerror", curl.describe) ||
      !find_function(library, "curl_slist_append", curl.append) ||
      !find_function(library, "curl_slist_free_all", curl.free_list) ||
      start(CURL_GLOBAL_DEFAULT) != CURLE_OK)
    return fail(ErrorKind::kUnsupported, "this machine has no libcurl", "install the package libcurl4");
  find_function(library, "curl_easy_option_by_id", curl.option);
  return curl;
}

/// Loaded once, by whoever needs it first: getting ready is not thread safe in the library itself.
const Result<Curl>& the_curl() {
  static const Result<Curl> curl = load_curl();
  return curl;
}

/// One transfer and what it has heard.
struct Transfer {
  const Curl& curl;
  CURL* handle;
  const HttpRequest& request;
  const HttpClient::Body& body;
  const HttpClient::Progress& progress;
  HttpAnswer answer{};
  std::uint64_t received = 0;
  std::optional<Error> failure{};
  std::size_t sent = 0;  ///< of the content, when it is sent once
  std::chrono::steady_clock::time_point window_began = std::chrono::steady_clock::now();
  std::uint64_t received_before_window = 0;

  /// Whether enough came in the time that is over now.
  Status check_pace() {
    const auto now = std::chrono::steady_clock::now();
    const auto& limits = request.limits;
    if (limits.least_in_window == 0 || now - window_began < limits.window) return {};
    const auto came = received - received_before_window;
    window_began = now;
    received_before_window = received;
    if (came >= limits.least_in_window) return {};
    return fail(ErrorKind::kTimeout,
                fmt::format("only {} came in {}", format_bytes(came), format_duration(limits.window)),
                "the server must be faster");
  }

  /// While the library goes on to where a redirect leads, the answers on the way are none of ours.
  bool is_on_the_way() const {
    return request.follow_redirects && answer.status / 100 == 3 && answer.headers.contains("location");
  }
};

std::size_t on_header(char* bytes, std::size_t size, std::size_t count, void* self) {
  auto& transfer = *static_cast<Transfer*>(self);
  const std::string_view line(bytes, size * count);
  if (line.starts_with("HTTP/")) {  // each answer on the way begins anew
    transfer.answer = {};
    const auto code = line.substr(std::min(line.find(' '), line.size() - 1) + 1, 3);
    std::from_chars(code.data(), code.data() + code.size(), transfer.answer.status);
    return size * count;
  }
  const auto colon = line.find(':');
  auto& headers = transfer.answer.headers;
  if (colon == std::string_view::npos || line.size() > kLongestHeader || headers.size() >= kMostHeaders)
    return size * count;
  auto& value = headers[lower(line.substr(0, colon))];
  if (value.size() < kLongestHeader)
    value.append(value.empty() ? "" : ", ").append(trimmed(line.substr(colon + 1)));
  return size * count;
}

Error too_large(const HttpRequest& request) {
  return {ErrorKind::kExhausted, fmt::format("it is larger than {}", format_bytes(request.limits.bytes)), "",
          ""};
}

/// Anything but the number of bytes ends the transfer.
std::size_t on_body(char* bytes, std::size_t size, std::size_t count, void* self) {
  auto& transfer = *static_cast<Transfer*>(self);
  const std::string_view piece(bytes, size * count);
  if (transfer.is_on_the_way()) return piece.size();
  transfer.received += piece.size();
  if (transfer.received > transfer.request.limits.bytes) {
    transfer.failure = too_large(transfer.request);
    return 0;
  }
  if (auto taken = transfer.body(transfer.answer, piece); !taken) {
    transfer.failure = taken.error();
    return 0;
  }
  return piece.size();
}

/// What can be read only once the library cannot send again.
std::size_t on_read(char* bytes, std::size_t size, std::size_t count, void* self) {
  auto& transfer = *static_cast<Transfer*>(self);
  const auto taken = transfer.request.content->bytes.copy(bytes, size * count, transfer.sent);
  transfer.sent += taken;
  return taken;
}
int on_rewind(void*, curl_off_t, int) {
  return CURL_SEEKFUNC_FAIL;
}

int on_progress(void* self, curl_off_t total, curl_off_t now, curl_off_t, curl_off_t) {
  auto& transfer = *static_cast<Transfer*>(self);
  if (auto pace = transfer.check_pace(); !pace) {
    transfer.failure = pace.error();
    return 1;
  }
  if (!transfer.progress) return 0;
  const auto counted = [](curl_off_t bytes) {
    return static_cast<std::uint64_t>(std::max<curl_off_t>(bytes, 0));
  };
  auto go_on = transfer.progress(transfer.answer, counted(now), counted(total));
  if (!go_on) transfer.failure = go_on.error();
  return go_on ? 0 : 1;
}

/// Sets options, and keeps the first that the library does not take: without it the transfer would go on,
/// only less protected.
class Options {
 public:
  Options(const Curl& curl, CURL* handle) : curl_(curl), handle_(handle) {}

  template <typename Value>
  void operator()(CURLoption option, Value value) {
    const auto code = curl_.set(handle_, option, value);
    if (code == CURLE_OK || !done_) return;
    const auto* known = curl_.option == nullptr ? nullptr : curl_.option(option);
    done_ = fail(ErrorKind::kUnsupported,
                 fmt::format("libcurl does not take its option {}: {}",
                             known == nullptr ? std::to_string(option) : known->name, curl_.describe(code)),
                 "install libcurl 7.85 or later");
  }
  const Status& done() const { return done_; }

 private:
  const Curl& curl_;
  CURL* handle_;
  Status done_;
};

void set_trust(Options& set, const HttpTrust* trust) {
  const auto set_text = [&](CURLoption option, const std::string& text) {
    curl_blob blob{const_cast<char*>(text.data()), text.size(), CURL_BLOB_NOCOPY};
    if (!text.empty()) set(option, &blob);
  };
  // The variables are the program's custom and OpenSSL's; the library itself does not look at them.
  for (const char* name : {"CURL_CA_BUNDLE", "SSL_CERT_FILE"})
    if (const char* trusted = ::getenv(name); trusted != nullptr) set(CURLOPT_CAINFO, trusted);
  if (const char* trusted = ::getenv("SSL_CERT_DIR"); trusted != nullptr) set(CURLOPT_CAPATH, trusted);
  if (trust == nullptr) return;
  if (trust->alone)
    for (const auto option : {CURLOPT_CAINFO, CURLOPT_CAPATH}) set(option, static_cast<const char*>(nullptr));
  set_text(CURLOPT_CAINFO_BLOB, trust->authorities);
  set_text(CURLOPT_SSLCERT_BLOB, trust->certificate);
  set_text(CURLOPT_SSLKEY_BLOB, trust->key);
}

void set_limits(Options& set, const HttpRequest& request) {
  set(CURLOPT_URL, request.url.c_str());
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
  set(CURLOPT_FOLLOWLOCATION, request.follow_redirects ? 1L : 0L);
  set(CURLOPT_MAXREDIRS, kMaxRedirects);
  set(CURLOPT_NOSIGNAL, 1L);
  if (!request.http2) set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  set(CURLOPT_USERAGENT, "drover");
  set(CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
  set(CURLOPT_TIMEOUT, static_cast<long>(request.limits.duration.count()));
  set(CURLOPT_LOW_SPEED_LIMIT, static_cast<long>(request.limits.slowest));
  set(CURLOPT_LOW_SPEED_TIME, static_cast<long>(request.limits.stall.count()));
  set(CURLOPT_MAXFILESIZE_LARGE, static_cast<curl_off_t>(request.limits.bytes));
  set(CURLOPT_BUFFERSIZE, 256L << 10);
}

void set_listeners(Options& set, Transfer& transfer) {
  set(CURLOPT_HEADERFUNCTION, &on_header);
  set(CURLOPT_HEADERDATA, &transfer);
  set(CURLOPT_WRITEFUNCTION, &on_body);
  set(CURLOPT_WRITEDATA, &transfer);
  set(CURLOPT_NOPROGRESS, 0L);
  set(CURLOPT_XFERINFOFUNCTION, &on_progress);
  set(CURLOPT_XFERINFODATA, &transfer);
}

/// What is sent, and the headers, for the caller to free.
curl_slist* set_content(Options& set, Transfer& transfer) {
  const auto& request = transfer.request;
  const auto& curl = transfer.curl;
  curl_slist* headers = nullptr;
  if (request.content) {
    set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.content->bytes.size()));
    if (request.send_once) {
      set(CURLOPT_POST, 1L);
      set(CURLOPT_READFUNCTION, &on_read);
      set(CURLOPT_READDATA, &transfer);
      set(CURLOPT_SEEKFUNCTION, &on_rewind);
    } else {
      set(CURLOPT_POSTFIELDS, request.content->bytes.c_str());
    }
    headers = curl.append(headers, ("Content-Type: " + request.content->type).c_str());
  }
  if (request.method != (request.content ? "POST" : "GET"))
    set(CURLOPT_CUSTOMREQUEST, request.method.c_str());
  for (const auto& header : request.headers) headers = curl.append(headers, header.c_str());
  return headers;
}

Result<HttpAnswer> outcome(Transfer& transfer, CURLcode code, const char* said) {
  if (transfer.failure) return Failure(*transfer.failure);
  if (code == CURLE_OK) {
    char* redirect = nullptr;
    transfer.curl.get(transfer.handle, CURLINFO_REDIRECT_URL, &redirect);
    if (redirect != nullptr) transfer.answer.redirect = redirect;
    return std::move(transfer.answer);
  }
  Error error{ErrorKind::kUnavailable, said[0] != '\0' ? said : transfer.curl.describe(code), "", ""};
  if (code == CURLE_SEND_FAIL_REWIND) error.message = "the connection ended before an answer came";
  if (code == CURLE_OPERATION_TIMEDOUT) error.kind = ErrorKind::kTimeout;
  if (code == CURLE_FILESIZE_EXCEEDED) error = too_large(transfer.request);
  if (code == CURLE_SSL_CACERT_BADFILE || code == CURLE_SSL_CERTPROBLEM) error.kind = ErrorKind::kInvalid;
  if (code == CURLE_PEER_FAILED_VERIFICATION) {
    error.kind = ErrorKind::kPermissionDenied;
    error.hint = "the server's certificate must be signed by an authority that this machine trusts";
  }
  return Failure(std::move(error));
}

}  // namespace

struct HttpClient::Handle {
  const Curl& curl;
  CURL* easy;
  ~Handle() { curl.cleanup(easy); }
};

HttpClient::HttpClient(std::unique_ptr<Handle> handle) : handle_(std::move(handle)) {}
HttpClient::HttpClient(HttpClient&&) noexcept = default;
HttpClient& HttpClient::operator=(HttpClient&&) noexcept = default;
HttpClient::~HttpClient() = default;

Result<HttpClient> HttpClient::create() {
  const auto& curl = the_curl();
  if (!curl) return Failure(curl.error());
  CURL* easy = curl->init();
  if (easy == nullptr) return fail(ErrorKind::kExhausted, "libcurl cannot begin");
  return HttpClient(std::unique_ptr<Handle>(new Handle{*curl, easy}));
}

Result<HttpAnswer> HttpClient::perform(const HttpRequest& request, const Body& body,
                                       const Progress& progress) {
  const auto& curl = handle_->curl;
  Transfer transfer{curl, handle_->easy, request, body, progress};
  std::array<char, CURL_ERROR_SIZE> said{};
  curl.reset(handle_->easy);  // of its options; connections stay
  Options set(curl, handle_->easy);
  set_limits(set, request);
  set_trust(set, request.trust.get());
  set_listeners(set, transfer);
  set(CURLOPT_ERRORBUFFER, said.data());
  const std::unique_ptr<curl_slist, decltype(curl.free_list)> headers(set_content(set, transfer),
                                                                      curl.free_list);
  set(CURLOPT_HTTPHEADER, headers.get());
  if (!set.done()) return Failure(set.done().error());
  const auto code = curl.perform(handle_->easy);
  return outcome(transfer, code, said.data());
}

bool HttpClient::has_sent() const {
  long bytes = 0;
  handle_->curl.get(handle_->easy, CURLINFO_REQUEST_SIZE, &bytes);
  return bytes > 0;
}

std::string HttpAnswer::header(const std::string& name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? "" : found->second;
}

std::string http_status_text(int status) {
  static const std::map<int, std::string_view> kReasons = {{204, "No Content"},
                                                           {206, "Partial Content"},
                                                           {301, "Moved Permanently"},
                                                           {302, "Found"},
                                                           {307, "Temporary Redirect"},
                                                           {308, "Permanent Redirect"},
                                                           {400, "Bad Request"},
                                                           {401, "Unauthorized"},
                                                           {403, "Forbidden"},
                                                           {404, "Not Found"},
                                                           {405, "Method Not Allowed"},
                                                           {406, "Not Acceptable"},
                                                           {408, "Request Timeout"},
                                                           {410, "Gone"},
                                                           {416, "Range Not Satisfiable"},
                                                           {429, "Too Many Requests"},
                                                           {500, "Internal Server Error"},
                                                           {501, "Not Implemented"},
                                                           {502, "Bad Gateway"},
                                                           {503, "Service Unavailable"},
                                                           {504, "Gateway Timeout"}};
  const auto found = kReasons.find(status);
  return found == kReasons.end() ? fmt::format("{}", status) : fmt::format("{} ({})", status, found->second);
}

}  // namespace drover
