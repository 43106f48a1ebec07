#include "container/fetch/download.h"

#define CURL_DISABLE_TYPECHECK  // its macros know only the functions by name
#include <curl/curl.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/beast/http/status.hpp>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <memory>

#include "base/files.h"
#include "base/units.h"

#undef curl_easy_setopt
#undef curl_easy_getinfo

namespace drover::container {
namespace {

constexpr long kMaxRedirects = 10;
constexpr long kConnectSeconds = 30;

/// The library's functions, as far as they are used here.
struct Curl {
  decltype(&::curl_easy_init) init = nullptr;
  decltype(&::curl_easy_setopt) set = nullptr;
  decltype(&::curl_easy_getinfo) get = nullptr;
  decltype(&::curl_easy_perform) perform = nullptr;
  decltype(&::curl_easy_cleanup) cleanup = nullptr;
  decltype(&::curl_easy_strerror) describe = nullptr;
  decltype(&::curl_slist_append) append = nullptr;
  decltype(&::curl_slist_free_all) free_list = nullptr;
};

template <typename Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  return function != nullptr;
}

Result<Curl> load() {
  void* library = nullptr;
  for (const char* name : {"libcurl.so.4", "libcurl-gnutls.so.4", "libcurl.so"})
    if (library == nullptr) library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
  Curl curl;
  if (library == nullptr || !find(library, "curl_easy_init", curl.init) ||
      !find(library, "curl_easy_setopt", curl.set) || !find(library, "curl_easy_getinfo", curl.get) ||
      !find(library, "curl_easy_perform", curl.perform) ||
      !find(library, "curl_easy_cleanup", curl.cleanup) ||
      !find(library, "curl_easy_strerror", curl.describe) ||
      !find(library, "curl_slist_append", curl.append) ||
      !find(library, "curl_slist_free_all", curl.free_list))
    return fail(ErrorKind::kUnsupported, "this machine has no libcurl", "install the package libcurl4");
  return curl;
}

/// One transfer and what it has heard.
struct Transfer {
  const Curl& curl;
  CURL* handle;
  int file;
  const std::optional<Validators>& known;
  const DownloadLimits& limits;
  const std::function<void(std::uint64_t, std::uint64_t)>& progress;
  Validators heard{};
  std::optional<std::uint64_t> length{};
  std::uint64_t written = 0;
  bool same_size = false;
  std::optional<Error> failure{};

  long status() const {
    long code = 0;
    curl.get(handle, CURLINFO_RESPONSE_CODE, &code);
    return code;
  }
};

std::string_view trimmed(std::string_view text) {
  const auto blank = [](unsigned char c) { return std::isspace(c) != 0; };
  while (!text.empty() && blank(static_cast<unsigned char>(text.front()))) text.remove_prefix(1);
  while (!text.empty() && blank(static_cast<unsigned char>(text.back()))) text.remove_suffix(1);
  return text;
}

bool is_header(std::string_view line, std::string_view name) {
  return line.size() > name.size() && line[name.size()] == ':' &&
         std::equal(name.begin(), name.end(), line.begin(),
                    [](unsigned char a, unsigned char b) { return std::tolower(a) == std::tolower(b); });
}

std::size_t hear_header(char* bytes, std::size_t size, std::size_t count, void* self) {
  auto& transfer = *static_cast<Transfer*>(self);
  const std::string_view line(bytes, size * count);
  const auto value = [&] { return std::string(trimmed(line.substr(line.find(':') + 1))); };
  if (line.starts_with("HTTP/")) {  // each answer on the way begins anew
    transfer.heard = {};
    transfer.length.reset();
  } else if (is_header(line, "etag")) {
    transfer.heard.etag = value();
  } else if (is_header(line, "last-modified")) {
    transfer.heard.last_modified = value();
  } else if (is_header(line, "content-length")) {
    const auto text = value();
    std::uint64_t length = 0;
    if (std::from_chars(text.data(), text.data() + text.size(), length).ec == std::errc())
      transfer.length = length;
  }
  return size * count;
}

/// Anything but the number of bytes ends the transfer.
std::size_t hear_body(char* bytes, std::size_t size, std::size_t count, void* self) {
  auto& transfer = *static_cast<Transfer*>(self);
  const std::string_view block(bytes, size * count);
  if (transfer.status() != 200) return 0;
  if (transfer.written == 0 && transfer.known) {
    const bool nothing_told = transfer.heard.etag.empty() && transfer.heard.last_modified.empty();
    transfer.same_size = nothing_told && transfer.length == transfer.known->size;
    if (transfer.same_size) return 0;
  }
  transfer.written += block.size();
  if (transfer.written > transfer.limits.bytes) {
    transfer.failure =
        Error{ErrorKind::kExhausted, fmt::format("it is larger than {}", format_bytes(transfer.limits.bytes)),
              "", ""};
    return 0;
  }
  if (auto written = write_all(transfer.file, block, "the sandbox"); !written) {
    transfer.failure = written.error();
    return 0;
  }
  return block.size();
}

int hear_progress(void* self, curl_off_t total, curl_off_t now, curl_off_t, curl_off_t) {
  auto& transfer = *static_cast<Transfer*>(self);
  if (transfer.status() == 200)
    transfer.progress(static_cast<std::uint64_t>(std::max<curl_off_t>(now, 0)),
                      static_cast<std::uint64_t>(std::max<curl_off_t>(total, 0)));
  return 0;
}

Error status_error(long status) {
  const auto kind = status == 401 || status == 403   ? ErrorKind::kPermissionDenied
                    : status == 404 || status == 410 ? ErrorKind::kNotFound
                                                     : ErrorKind::kUnavailable;
  const auto reason = boost::beast::http::obsolete_reason(
      boost::beast::http::int_to_status(static_cast<unsigned>(std::max(status, 0L))));
  return Error{kind, fmt::format("the server answered {} ({})", status, std::string(reason)), "", ""};
}

Result<Downloaded> outcome(const Transfer& transfer, CURLcode code, const char* said) {
  if (transfer.failure) return Failure(*transfer.failure);
  const auto status = transfer.status();
  if (transfer.known && (status == 304 || transfer.same_size)) return Downloaded{true, *transfer.known};
  if (status != 0 && status != 200 && (code == CURLE_OK || code == CURLE_WRITE_ERROR))
    return Failure(status_error(status));
  if (code == CURLE_OK) {
    auto validators = transfer.heard;
    validators.size = transfer.written;
    return Downloaded{false, std::move(validators)};
  }
  Error error{ErrorKind::kUnavailable, said[0] != '\0' ? said : transfer.curl.describe(code), "", ""};
  if (code == CURLE_OPERATION_TIMEDOUT) error.kind = ErrorKind::kTimeout;
  if (code == CURLE_PEER_FAILED_VERIFICATION)
    error.hint = "the server's certificate must be signed by an authority that this machine trusts";
  if (code == CURLE_FILESIZE_EXCEEDED) error.kind = ErrorKind::kExhausted;
  return Failure(std::move(error));
}

}  // namespace

Result<Downloaded> download(const std::string& uri, int file, const std::optional<Validators>& known,
                            const DownloadLimits& limits,
                            const std::function<void(std::uint64_t, std::uint64_t)>& progress) {
  DROVER_TRY(const auto curl, load());
  const std::unique_ptr<CURL, decltype(curl.cleanup)> handle(curl.init(), curl.cleanup);
  if (!handle) return fail(ErrorKind::kExhausted, "libcurl cannot begin");
  Transfer transfer{curl, handle.get(), file, known, limits, progress};
  std::array<char, CURL_ERROR_SIZE> said{};
  const auto set = [&](CURLoption option, auto value) { curl.set(handle.get(), option, value); };
  set(CURLOPT_URL, uri.c_str());
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
  set(CURLOPT_FOLLOWLOCATION, 1L);
  set(CURLOPT_MAXREDIRS, kMaxRedirects);
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_USERAGENT, "drover");
  set(CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
  set(CURLOPT_TIMEOUT, static_cast<long>(limits.duration.count()));
  set(CURLOPT_LOW_SPEED_LIMIT, 1L);
  set(CURLOPT_LOW_SPEED_TIME, static_cast<long>(limits.stall.count()));
  set(CURLOPT_MAXFILESIZE_LARGE, static_cast<curl_off_t>(limits.bytes));
  set(CURLOPT_ERRORBUFFER, said.data());
  // The variables are the program's custom and OpenSSL's; the library itself does not look at them.
  for (const char* name : {"CURL_CA_BUNDLE", "SSL_CERT_FILE"})
    if (const char* trusted = ::getenv(name); trusted != nullptr) set(CURLOPT_CAINFO, trusted);
  if (const char* trusted = ::getenv("SSL_CERT_DIR"); trusted != nullptr) set(CURLOPT_CAPATH, trusted);
  set(CURLOPT_HEADERFUNCTION, &hear_header);
  set(CURLOPT_HEADERDATA, &transfer);
  set(CURLOPT_WRITEFUNCTION, &hear_body);
  set(CURLOPT_WRITEDATA, &transfer);
  set(CURLOPT_NOPROGRESS, 0L);
  set(CURLOPT_XFERINFOFUNCTION, &hear_progress);
  set(CURLOPT_XFERINFODATA, &transfer);
  curl_slist* headers = nullptr;
  if (known && !known->etag.empty())
    headers = curl.append(headers, fmt::format("If-None-Match: {}", known->etag).c_str());
  else if (known && !known->last_modified.empty())
    headers = curl.append(headers, fmt::format("If-Modified-Since: {}", known->last_modified).c_str());
  set(CURLOPT_HTTPHEADER, headers);
  const auto code = curl.perform(handle.get());
  auto result = outcome(transfer, code, said.data());
  curl.free_list(headers);
  return result;
}

}  // namespace drover::container
