#include "kube/sandboxes/client.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/decode.h"
#include "kube/client/object.h"
#include "kube/client/url_text.h"

namespace drover::kube {
namespace {

using nlohmann::json;

constexpr std::size_t kMostAtOnce = 1 << 20;

std::string query_of(const User& reader, const std::string& path) {
  return fmt::format("path={}&uid={}&gid={}&groups={}&name={}", url_text(path), reader.uid, reader.gid,
                     fmt::join(reader.groups, ","), url_text(reader.name));
}

/// What an agent says that is no answer.
Failure nonsense() {
  return fail(ErrorKind::kUnavailable, "The node's agent answers what nobody understands",
              "look whether it is of the version of the control plane");
}

Result<WireAnswer> ask_well(const AskAgent& ask, const WireRequest& request) {
  DROVER_TRY(auto answer, ask(request));
  if (answer.status == 200) return answer;
  const auto told = parse_json(answer.body, "The agent's answer");
  if (!told || text_at(*told, "/error/message").empty()) return nonsense();
  return fail(error_kind_from_name(text_at(*told, "/error/kind")), text_at(*told, "/error/message"),
              text_at(*told, "/error/hint"), text_at(*told, "/error/path"));
}

Result<json> ask_for_list(const AskAgent& ask, const std::string& target, const char* field) {
  DROVER_TRY(const auto answer, ask_well(ask, {"GET", target}));
  auto value = parse_json(answer.body, "The agent's answer");
  if (!value || !value->is_object() || !value->contains(field) || !(*value)[field].is_array())
    return nonsense();
  return std::move((*value)[field]);
}

template <typename T>
T number_at(const json& entry, const char* name) {
  const auto found = entry.find(name);
  return found != entry.end() && found->is_number() ? found->get<T>() : T{};
}

}  // namespace

Result<std::vector<FileInfo>> browse_sandbox(const AskAgent& ask, const std::string& uid, const User& reader,
                                             const std::string& path) {
  DROVER_TRY(const auto list,
             ask_for_list(ask, fmt::format("/sandboxes/{}/files?{}", uid, query_of(reader, path)), "files"));
  std::vector<FileInfo> files;
  for (const auto& entry : list) {
    auto name = text_at(entry, "/name");
    if (name.empty() || name.find('/') != std::string::npos || name == "." || name == "..") return nonsense();
    files.push_back({std::move(name), text_at(entry, "/kind"), number_at<std::uint64_t>(entry, "size"),
                     number_at<unsigned>(entry, "mode") & 07777u, number_at<uid_t>(entry, "uid"),
                     number_at<gid_t>(entry, "gid"),
                     TimePoint(TimePoint::duration(number_at<std::int64_t>(entry, "modified")))});
  }
  return files;
}

Result<SandboxContent> sandbox_file(const AskAgent& ask, const std::string& uid, const User& reader,
                                    const std::string& path) {
  const auto target = fmt::format("/sandboxes/{}/file?{}", uid, query_of(reader, path));
  DROVER_TRY(const auto opened, ask_well(ask, {"GET", target + "&offset=0&length=0"}));
  SandboxContent content{opened.size, opened.inode, {}};
  content.read = [ask, target, inode = opened.inode](std::uint64_t offset,
                                                     std::size_t length) -> Result<std::string> {
    const auto most = std::min(length, kMostAtOnce);
    DROVER_TRY(
        auto piece,
        ask_well(ask, {"GET", fmt::format("{}&offset={}&length={}&inode={}", target, offset, most, inode)}));
    if (piece.body.size() > most) return nonsense();
    return std::move(piece.body);
  };
  return content;
}

Status remove_sandbox(const AskAgent& ask, const std::string& uid) {
  return ask_well(ask, {"DELETE", "/sandboxes/" + uid}).map([](const auto&) {});
}

Result<std::map<std::string, std::uint64_t>> sandbox_sizes(const AskAgent& ask) {
  DROVER_TRY(const auto list, ask_for_list(ask, "/sandboxes", "sandboxes"));
  std::map<std::string, std::uint64_t> sizes;
  for (const auto& entry : list) sizes[text_at(entry, "/uid")] = number_at<std::uint64_t>(entry, "bytes");
  return sizes;
}

Result<IdleTimes> idle_times(const AskAgent& ask) {
  DROVER_TRY(const auto list, ask_for_list(ask, "/idle", "pods"));
  IdleTimes times;
  for (const auto& entry : list)
    times[text_at(entry, "/uid")] = std::chrono::milliseconds(number_at<std::int64_t>(entry, "idle_ms"));
  return times;
}

Status kill_pod(const AskAgent& ask, const std::string& uid) {
  return ask_well(ask, {"DELETE", "/pods/" + uid}).map([](const auto&) {});
}

}  // namespace drover::kube
