#include "api/download.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <stdexcept>

#include "api/async.h"

namespace drover::api {
namespace {

constexpr std::size_t kPiece = 256 * 1024;

/// A name that is safe between quotes in a header (RFC 6266).
std::string safe_file_name(const std::string& path) {
  auto name = path.substr(path.rfind('/') + 1);
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return c < 0x20 || c > 0x7e || c == '"' || c == '\\'; },
      '_');
  return name;
}

asio::awaitable<void> send_file(FairPool& pool, uid_t caller, std::shared_ptr<const SandboxContent> file,
                                BodyWriter& writer) {
  for (std::uint64_t offset = 0; offset < file->size;) {
    const auto length = std::min<std::uint64_t>(kPiece, file->size - offset);
    auto piece = co_await on_pool(pool, caller, [=] { return file->read(offset, length); });
    if (!piece || piece->size() < length) throw std::runtime_error("the file changed while it was sent");
    offset += length;
    co_await writer.write(std::move(*piece));
  }
}

}  // namespace

Response download_response(FairPool& pool, uid_t caller, SandboxContent opened, const std::string& path) {
  const auto file = std::make_shared<const SandboxContent>(std::move(opened));
  Response response;
  response.content_type = "application/octet-stream";
  response.headers.emplace_back("Content-Disposition",
                                fmt::format("attachment; filename=\"{}\"", safe_file_name(path)));
  response.stream_length = file->size;
  response.stream = [&pool, caller, file](BodyWriter& writer) {
    return send_file(pool, caller, file, writer);
  };
  return response;
}

}  // namespace drover::api
