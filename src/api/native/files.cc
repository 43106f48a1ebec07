#include <nlohmann/json.hpp>

#include "api/async.h"
#include "api/download.h"
#include "api/native/handlers.h"
#include "api/native/views.h"
#include "api/workers.h"
#include "base/sandbox.h"

namespace drover::api {

using nlohmann::json;

namespace {

constexpr std::int64_t kDefaultLength = 64 * 1024;
constexpr std::int64_t kMaxLength = 512 * 1024;
constexpr std::int64_t kMaxOffset = std::int64_t{1} << 62;

/// offset -1 asks for the size alone, as Mesos' /files/read does.
Result<Response> read_page(const SandboxContent& file, std::int64_t offset, std::int64_t length) {
  std::string bytes;
  if (offset >= 0) {
    DROVER_TRY(bytes, file.read(static_cast<std::uint64_t>(offset), static_cast<std::size_t>(length)));
    if (const auto whole = complete_utf8(bytes); whole > 0) bytes.resize(whole);
  }
  auto value = view_bytes(bytes);
  value["offset"] = offset < 0 ? file.size : static_cast<std::uint64_t>(offset);
  value["length"] = bytes.size();
  value["size"] = file.size;
  return json_response(value);
}

asio::awaitable<Result<SandboxContent>> open_file(const Services& services, const Request& request,
                                                  std::string path) {
  DROVER_CO_TRY(auto sandbox, services.daemon->files(*request.caller, request.parameters.at("id")));
  const auto open = [sandbox, path, reader = request.caller->user] { return sandbox->file(reader, path); };
  co_return co_await on_pool(services.workers->files, request.caller->user.uid, open);
}

}  // namespace

asio::awaitable<Result<Response>> browse_files(const Services& services, const Request& request) {
  Query query(request);
  const auto path = query.text("path");
  DROVER_CO_CHECK_OK(query.finish());
  DROVER_CO_TRY(auto sandbox, services.daemon->files(*request.caller, request.parameters.at("id")));
  // The text of a large folder is large, too: it is made beside the strand.
  const auto browse = [sandbox, path, reader = request.caller->user]() -> Result<Response> {
    DROVER_TRY(const auto found, sandbox->browse(reader, path));
    json files = json::array();
    for (const auto& file : found) files.push_back(view(file));
    return json_response({{"path", path}, {"files", std::move(files)}});
  };
  co_return co_await on_pool(services.workers->files, request.caller->user.uid, browse);
}

asio::awaitable<Result<Response>> read_sandbox_file(const Services& services, const Request& request) {
  Query query(request);
  const auto path = query.text("path");
  const auto offset = query.integer("offset", -1, kMaxOffset, 0);
  const auto length = query.integer("length", 0, kMaxLength, kDefaultLength);
  DROVER_CO_CHECK_OK(query.finish());
  DROVER_CO_TRY(auto file, co_await open_file(services, request, path));
  auto read = [file = std::move(file), offset, length] { return read_page(file, offset, length); };
  co_return co_await on_pool(services.workers->files, request.caller->user.uid, std::move(read));
}

asio::awaitable<Result<Response>> download_file(const Services& services, const Request& request) {
  Query query(request);
  const auto path = query.text("path");
  DROVER_CO_CHECK_OK(query.finish());
  DROVER_CO_TRY(auto opened, co_await open_file(services, request, path));
  co_return download_response(services.workers->files, request.caller->user.uid, std::move(opened), path);
}

}  // namespace drover::api
