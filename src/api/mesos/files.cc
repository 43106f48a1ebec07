// /files: sandboxes, by the paths that /state gives.

#include "api/mesos/files.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <charconv>
#include <map>
#include <nlohmann/json.hpp>

#include "api/async.h"
#include "api/download.h"
#include "api/mesos/call.h"
#include "api/mesos/operator.h"
#include "api/mesos/views.h"
#include "api/workers.h"
#include "base/users.h"
#include "engine/access.h"

namespace drover::api::mesos {
namespace {

using nlohmann::json;

constexpr std::size_t kPage = 64 * 1024;

struct Place {
  std::shared_ptr<const SandboxReader> sandbox;
  std::string task;
  std::string inside;  ///< path in the sandbox
  std::string prefix;  ///< of `path`, up to the sandbox
};

/// "/slaves/S/frameworks/F/executors/E/runs/ID/stdout": what counts is the run's id.
tl::expected<Place, Response> find_place(const Services& services, const engine::Caller& caller,
                                         const std::string& path) {
  if (path.empty()) return tl::unexpected(text_response(400, "Expecting 'path=value' in query.\n"));
  constexpr std::string_view kRuns = "/runs/";
  const auto runs = path.find(kRuns);
  const auto missing = [] { return tl::unexpected(text_response(404, "")); };
  if (runs == std::string::npos) return missing();
  const auto begin = runs + kRuns.size();
  const auto end = std::min(path.find('/', begin), path.size());
  Place place;
  place.task = path.substr(begin, end - begin);
  place.prefix = path.substr(0, end);
  place.inside = end < path.size() ? path.substr(end + 1) : "";
  auto sandbox = services.daemon->files(caller, place.task);
  if (!sandbox) return missing();
  place.sandbox = std::move(*sandbox);
  return place;
}

Response refusal(const Error& error) {
  return text_response(error.kind == ErrorKind::kNotFound ? 404 : 400, error.message + ".\n");
}

/// "-rw-r--r--"
std::string mode_text(const FileInfo& file) {
  std::string text = file.kind == "directory" ? "d" : file.kind == "link" ? "l" : "-";
  for (int bit = 8; bit >= 0; --bit) text += (file.mode >> bit & 1) != 0 ? "xwr"[bit % 3] : '-';
  return text;
}

/// Names of users, each looked up once. A number where the machine's user database has none, or does not say.
class Names {
 public:
  const std::string& of(uid_t uid, gid_t gid) {
    auto& name = names_[uid];
    if (!name.empty()) return name;
    const auto user = drover::user_of(uid, gid);
    return name = user ? user->name : std::to_string(uid);
  }

 private:
  std::map<uid_t, std::string> names_;
};

json view_file(const ListedFile& listed) {
  const auto& file = listed.file;
  return {{"path", listed.path},
          {"size", file.size},
          {"nlink", file.kind == "directory" ? 2 : 1},
          {"mode", mode_text(file)},
          {"mtime", static_cast<double>(file.modified_at.time_since_epoch().count() / 1000)},
          {"uid", listed.user},
          {"gid", std::to_string(file.gid)}};
}

std::string text_of(const Request& request, const std::string& name) {
  const auto found = request.query.find(name);
  return found == request.query.end() ? "" : found->second;
}

std::optional<std::int64_t> number_of(const Request& request, const std::string& name,
                                      std::int64_t fallback) {
  const auto found = request.query.find(name);
  if (found == request.query.end()) return fallback;
  std::int64_t value = 0;
  const auto& text = found->second;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

Result<SandboxContent> open_file(const Place& place, const User& reader) {
  return place.sandbox->file(reader, place.inside);
}

Result<FilePiece> read_piece(const Place& place, const User& reader, WantedPiece wanted) {
  DROVER_TRY(const auto file, open_file(place, reader));
  FilePiece piece{file.size, ""};
  if (wanted.offset < 0 || wanted.length == 0) return piece;
  const auto most =
      wanted.length < 0 ? kPage : std::min<std::size_t>(static_cast<std::size_t>(wanted.length), kPage);
  DROVER_TRY(piece.data, file.read(static_cast<std::uint64_t>(wanted.offset), most));
  return piece;
}

Result<std::vector<ListedFile>> list_folder(const Place& place, const User& reader) {
  DROVER_TRY(auto files, place.sandbox->browse(reader, place.inside));
  Names names;
  const auto folder = place.inside.empty() ? place.prefix : place.prefix + "/" + place.inside;
  std::vector<ListedFile> listed;
  for (auto& file : files) {
    auto path = folder + "/" + file.name;
    listed.push_back({std::move(path), names.of(file.uid, file.gid), std::move(file)});
  }
  return listed;
}

/// Reads with `read` and answers with `show`, beside the strand.
template <typename Read, typename Show>
asio::awaitable<Result<Response>> answer_from(const Services& services, const engine::Caller& caller,
                                              const std::string& path, Read read, Show show) {
  auto place = find_place(services, caller, path);
  if (!place) co_return place.error();
  const auto answer = [place = std::move(*place), reader = caller.user, read = std::move(read),
                       show = std::move(show)]() -> Result<Response> {
    auto found = read(place, reader);
    if (!found) return refusal(found.error());
    return show(std::move(*found));
  };
  auto response = co_await on_pool(services.workers->files, caller.user.uid, answer);
  if (!response) co_return refusal(response.error());
  co_return response;
}

}  // namespace

asio::awaitable<Result<Response>> list_files(const Services& services, const engine::Caller& caller,
                                             const std::string& path, ShowFiles show) {
  return answer_from(services, caller, path, list_folder, std::move(show));
}

asio::awaitable<Result<Response>> read_file(const Services& services, const engine::Caller& caller,
                                            const std::string& path, WantedPiece wanted, ShowPiece show) {
  const auto read = [wanted](const Place& place, const User& reader) {
    return read_piece(place, reader, wanted);
  };
  return answer_from(services, caller, path, read, std::move(show));
}

Result<Write> list_sandboxes(const Services& services, const Request& request) {
  return [&daemon = *services.daemon,
          snapshot = snapshot_of(services, *request.caller)]() -> Result<Response> {
    json folders = json::object();
    for (const bool removed : {false, true})
      for (const auto& framework : frameworks_for(snapshot, removed))
        for (const auto* record : framework.tasks)
          if (engine::may_see(snapshot.caller, *record))
            folders[sandbox_path(snapshot, framework.id, *record, executor_of(*snapshot.state, *record))] =
                daemon.sandbox_of(record->task.id);
    return compact(folders);
  };
}

asio::awaitable<Result<Response>> browse(const Services& services, const Request& request) {
  const auto show = [](const std::vector<ListedFile>& files) -> Result<Response> {
    json listed = json::array();
    for (const auto& file : files) listed.push_back(view_file(file));
    return compact(listed);
  };
  co_return co_await list_files(services, *request.caller, text_of(request, "path"), show);
}

asio::awaitable<Result<Response>> read(const Services& services, const Request& request) {
  const auto offset = number_of(request, "offset", -1);
  const auto length = number_of(request, "length", -1);
  if (!offset) co_return text_response(400, "Failed to parse offset.\n");
  if (!length) co_return text_response(400, "Failed to parse length.\n");
  if (*offset < -1) co_return text_response(400, fmt::format("Negative offset provided: {}.\n", *offset));
  const auto show = [offset = *offset](FilePiece piece) -> Result<Response> {
    // It is text in JSON: no character is cut in two.
    if (const auto whole = complete_utf8(piece.data); whole > 0) piece.data.resize(whole);
    return compact(
        {{"data", piece.data}, {"offset", offset < 0 ? static_cast<std::int64_t>(piece.size) : offset}});
  };
  co_return co_await read_file(services, *request.caller, text_of(request, "path"), {*offset, *length}, show);
}

asio::awaitable<Result<Response>> download(const Services& services, const Request& request) {
  const auto place = find_place(services, *request.caller, text_of(request, "path"));
  if (!place) co_return place.error();
  const auto& reader = request.caller->user;
  auto opened = co_await on_pool(services.workers->files, reader.uid,
                                 [place = *place, reader] { return open_file(place, reader); });
  if (!opened) co_return refusal(opened.error());
  co_return download_response(services.workers->files, reader.uid, std::move(*opened), place->inside);
}

}  // namespace drover::api::mesos
