#include <nlohmann/json.hpp>

#include "api/async.h"
#include "api/download.h"
#include "api/native/handlers.h"
#include "api/native/views.h"
#include "api/sandbox.h"

namespace drover::api {

using nlohmann::json;

namespace {

constexpr std::int64_t kDefaultLength = 64 * 1024;
constexpr std::int64_t kMaxLength = 512 * 1024;
constexpr std::int64_t kMaxOffset = std::int64_t{1} << 62;

struct Page {
  std::string bytes;
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
};

/// offset -1 asks for the size alone, as Mesos' /files/read does.
Result<Page> read_page(const SandboxFile& file, std::int64_t offset, std::int64_t length) {
  if (offset < 0) return Page{"", file.size, file.size};
  const auto from = static_cast<std::uint64_t>(offset);
  DROVER_TRY(auto bytes, file.read(from, static_cast<std::size_t>(length)));
  if (const auto whole = complete_utf8(bytes); whole > 0) bytes.resize(whole);
  return Page{std::move(bytes), from, file.size};
}

asio::awaitable<Result<SandboxFile>> open_file(const Services& services, const Request& request,
                                               std::string path) {
  DROVER_CO_TRY(auto folder, services.daemon->sandbox(*request.caller, request.parameters.at("id")));
  const auto open = [folder, path, uid = request.caller->user.uid]() -> Result<SandboxFile> {
    DROVER_TRY(const auto sandbox, Sandbox::open(folder, uid));
    return sandbox.file(path);
  };
  co_return co_await on_pool(*services.pool, open);
}

}  // namespace

asio::awaitable<Result<Response>> browse_files(const Services& services, const Request& request) {
  Query query(request);
  const auto path = query.text("path");
  DROVER_CO_CHECK_OK(query.finish());
  DROVER_CO_TRY(auto folder, services.daemon->sandbox(*request.caller, request.parameters.at("id")));
  const auto browse = [folder, path, uid = request.caller->user.uid]() -> Result<std::vector<FileInfo>> {
    DROVER_TRY(const auto sandbox, Sandbox::open(folder, uid));
    return sandbox.browse(path);
  };
  DROVER_CO_TRY(const auto found, co_await on_pool(*services.pool, browse));
  json files = json::array();
  for (const auto& file : found) files.push_back(view(file));
  co_return json_response({{"path", path}, {"files", std::move(files)}});
}

asio::awaitable<Result<Response>> read_sandbox_file(const Services& services, const Request& request) {
  Query query(request);
  const auto path = query.text("path");
  const auto offset = query.integer("offset", -1, kMaxOffset, 0);
  const auto length = query.integer("length", 0, kMaxLength, kDefaultLength);
  DROVER_CO_CHECK_OK(query.finish());
  DROVER_CO_TRY(auto file, co_await open_file(services, request, path));
  auto read = [file = std::move(file), offset, length] { return read_page(file, offset, length); };
  DROVER_CO_TRY(const auto page, co_await on_pool(*services.pool, std::move(read)));
  auto value = view_bytes(page.bytes);
  value["offset"] = page.offset;
  value["length"] = page.bytes.size();
  value["size"] = page.size;
  co_return json_response(value);
}

asio::awaitable<Result<Response>> download_file(const Services& services, const Request& request) {
  Query query(request);
  const auto path = query.text("path");
  DROVER_CO_CHECK_OK(query.finish());
  DROVER_CO_TRY(auto opened, co_await open_file(services, request, path));
  co_return download_response(*services.pool, std::move(opened), path);
}

}  // namespace drover::api
