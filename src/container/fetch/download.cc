#include "container/fetch/download.h"

#include <fmt/format.h>

#include <charconv>

#include "base/files.h"

namespace drover::container {
namespace {

Error status_error(int status) {
  const auto kind = status == 401 || status == 403   ? ErrorKind::kPermissionDenied
                    : status == 404 || status == 410 ? ErrorKind::kNotFound
                                                     : ErrorKind::kUnavailable;
  return Error{kind, "the server answered " + http_status_text(status), "", ""};
}

Validators validators_of(const HttpAnswer& answer, std::uint64_t size) {
  return {answer.header("etag"), answer.header("last-modified"), size};
}

/// Where a server tells nothing by which a file is known again, its size must do.
bool is_same_size(const HttpAnswer& head, const Validators& known) {
  if (head.headers.contains("etag") || head.headers.contains("last-modified")) return false;
  const auto text = head.header("content-length");
  std::uint64_t length = 0;
  return std::from_chars(text.data(), text.data() + text.size(), length).ec == std::errc() &&
         length == known.size;
}

std::vector<std::string> conditions(const std::optional<Validators>& known) {
  if (known && !known->etag.empty()) return {"If-None-Match: " + known->etag};
  if (known && !known->last_modified.empty()) return {"If-Modified-Since: " + known->last_modified};
  return {};
}

}  // namespace

Result<Downloaded> download(const std::string& uri, int file, const std::optional<Validators>& known,
                            const DownloadLimits& limits,
                            const std::function<void(std::uint64_t, std::uint64_t)>& progress) {
  DROVER_TRY(auto client, HttpClient::create());
  std::uint64_t written = 0;
  bool same_size = false;
  const auto keep = [&](const HttpAnswer& head, std::string_view piece) -> Status {
    if (head.status != 200) return Failure(status_error(head.status));
    same_size = written == 0 && known && is_same_size(head, *known);
    if (same_size) return fail(ErrorKind::kConflict, "it is here already");
    written += piece.size();
    return write_all(file, piece, "the sandbox");
  };
  const auto report = [&](const HttpAnswer& head, std::uint64_t done, std::uint64_t total) -> Status {
    if (head.status == 200) progress(done, total);
    return {};
  };
  const HttpRequest request{.url = uri, .headers = conditions(known), .limits = limits};
  const auto answer = client.perform(request, keep, report);
  if (same_size || (known && answer && answer->status == 304)) return Downloaded{true, *known};
  if (!answer) return Failure(answer.error());
  if (answer->status != 200) return Failure(status_error(answer->status));
  return Downloaded{false, validators_of(*answer, written)};
}

}  // namespace drover::container
