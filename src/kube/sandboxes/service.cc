#include "kube/sandboxes/service.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <boost/url/parse.hpp>
#include <boost/url/url_view.hpp>
#include <cerrno>
#include <charconv>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "base/sandbox.h"
#include "base/unix_socket.h"
#include "kube/sandboxes/names.h"

namespace drover::kube {
namespace {

using nlohmann::json;

constexpr std::size_t kMostConnections = 32;
constexpr std::uint64_t kMostPiece = 1 << 20;
constexpr std::chrono::minutes kSilence{2};
constexpr std::chrono::seconds kToWrite{30};

/// Decoded; "" where it is not given.
std::string parameter(const boost::urls::url_view& url, std::string_view name) {
  const auto parameters = url.params();
  const auto found = parameters.find(name);
  return found == parameters.end() ? "" : std::string((*found).value);
}

Result<std::uint64_t> number(const boost::urls::url_view& url, std::string_view name) {
  const auto text = parameter(url, name);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size()) return value;
  return fail(ErrorKind::kInvalid, fmt::format("'{}' is no number", text), "", fmt::format("?{}", name));
}

Result<User> reader_of(const boost::urls::url_view& url) {
  User reader;
  DROVER_TRY(const auto uid, number(url, "uid"));
  DROVER_TRY(const auto gid, number(url, "gid"));
  constexpr std::uint64_t kHighest = static_cast<uid_t>(-2);
  if (uid > kHighest || gid > kHighest)
    return fail(ErrorKind::kInvalid, "No user has such a number", "", "?uid");
  reader.uid = static_cast<uid_t>(uid);
  reader.gid = static_cast<gid_t>(gid);
  reader.name = parameter(url, "name");
  const auto groups = parameter(url, "groups");
  for (const char *at = groups.data(), *end = at + groups.size(); at < end; ++at) {
    gid_t group = 0;
    const auto [rest, error] = std::from_chars(at, end, group);
    if (error != std::errc() || (rest != end && *rest != ','))
      return fail(ErrorKind::kInvalid, fmt::format("'{}' are no groups", groups), "", "?groups");
    reader.groups.push_back(group);
    at = rest;
  }
  return reader;
}

json list_all(const SandboxStore& store) {
  json all = json::array();
  for (const auto& one : store.list())
    all.push_back({{"uid", one.uid},
                   {"namespace", one.name_space},
                   {"pod", one.pod},
                   {"live", one.live},
                   {"bytes", one.bytes}});
  return {{"sandboxes", std::move(all)}};
}

json list_idle(const IdleTimes& times) {
  json pods = json::array();
  for (const auto& [uid, time] : times) pods.push_back({{"uid", uid}, {"idle_ms", time.count()}});
  return {{"pods", std::move(pods)}};
}

Result<WireAnswer> browse(const Sandbox& sandbox, const std::string& path) {
  DROVER_TRY(const auto found, sandbox.browse(path));
  json files = json::array();
  for (const auto& file : found)
    files.push_back({{"name", file.name},
                     {"kind", file.kind},
                     {"size", file.size},
                     {"mode", file.mode},
                     {"uid", file.uid},
                     {"gid", file.gid},
                     {"modified", file.modified_at.time_since_epoch().count()}});
  // Names are bytes; what is no UTF-8 cannot be told exactly.
  return WireAnswer{
      .body = json{{"files", std::move(files)}}.dump(-1, ' ', false, json::error_handler_t::replace)};
}

Result<WireAnswer> read_piece(const Sandbox& sandbox, const std::string& path,
                              const boost::urls::url_view& url) {
  DROVER_TRY(const auto offset, number(url, "offset"));
  DROVER_TRY(const auto length, number(url, "length"));
  if (length > kMostPiece || offset > std::uint64_t{1} << 62)
    return fail(ErrorKind::kInvalid, "So much of a file is not read at once");
  DROVER_TRY(const auto file, sandbox.file(path));
  if (!parameter(url, "inode").empty()) {
    DROVER_TRY(const auto inode, number(url, "inode"));
    if (inode != file.inode)
      return fail(ErrorKind::kConflict, fmt::format("'{}' is another file by now", path), "read it again");
  }
  WireAnswer answer{.size = file.size, .inode = file.inode};
  DROVER_TRY(answer.body, file.read(offset, length));
  return answer;
}

/// Only of a pod whose sandbox is here: nobody ends others' by it.
Result<WireAnswer> kill_pod_of(const SandboxStore& store, const PodCalls& pods, const std::string& uid) {
  DROVER_TRY(const bool is_live, store.is_live(uid));
  if (is_live) DROVER_CHECK_OK(pods.kill(uid));
  return WireAnswer{};
}

Result<WireAnswer> answer_of(SandboxStore& store, const PodCalls& pods, const WireRequest& request) {
  const auto url = boost::urls::parse_origin_form(request.target);
  if (!url) return fail(ErrorKind::kInvalid, "The target of the request is no path");
  std::vector<std::string> segments;
  for (const auto& segment : url->segments()) segments.emplace_back(segment);
  const auto unknown = [] {
    return fail(ErrorKind::kNotFound, "The node's agent answers nothing of that kind");
  };
  if (pods.idle && request.method == "GET" && segments == std::vector<std::string>{"idle"}) {
    DROVER_TRY(const auto times, pods.idle());
    return WireAnswer{.body = list_idle(times).dump()};
  }
  if (pods.kill && request.method == "DELETE" && segments.size() == 2 && segments[0] == "pods")
    return kill_pod_of(store, pods, segments[1]);
  if (segments.empty() || segments[0] != "sandboxes" || segments.size() > 3) return unknown();
  if (segments.size() == 1 && request.method == "GET") return WireAnswer{.body = list_all(store).dump()};
  if (segments.size() == 2 && request.method == "DELETE") {
    DROVER_CHECK_OK(store.remove(segments[1]));
    return WireAnswer{};
  }
  if (segments.size() != 3 || request.method != "GET") return unknown();
  DROVER_TRY(auto reader, reader_of(*url));
  DROVER_TRY(auto folder, store.find(segments[1]));
  DROVER_TRY(const auto sandbox, Sandbox::open(std::move(folder), std::move(reader)));
  const auto path = parameter(*url, "path");
  if (segments[2] == "files") return browse(sandbox, path);
  if (segments[2] == "file") return read_piece(sandbox, path, *url);
  return unknown();
}

}  // namespace

WireAnswer answer(SandboxStore& store, const PodCalls& pods, const WireRequest& request) {
  auto found = answer_of(store, pods, request);
  if (found) return std::move(*found);
  const auto& error = found.error();
  const auto& info = error_kind_info(error.kind);
  const json told = {
      {"error",
       {{"kind", info.name}, {"message", error.message}, {"hint", error.hint}, {"path", error.path}}}};
  return {info.http_status, told.dump(-1, ' ', false, json::error_handler_t::replace)};
}

Result<std::unique_ptr<SandboxService>> SandboxService::listen(SandboxStore& store, PodCalls pods) {
  const auto& folder = store.folder();
  DROVER_TRY(auto socket, listen_at(folder, kSandboxSocket));
  if (::fchmodat(folder.fd(), kSandboxSocket, 0600, 0) != 0)
    return fail_errno(fmt::format("Failed to close '{}/{}' to others", folder.path(), kSandboxSocket), errno);
  return std::unique_ptr<SandboxService>(new SandboxService(store, std::move(pods), std::move(socket)));
}

SandboxService::SandboxService(SandboxStore& store, PodCalls pods, UniqueFd socket)
    : store_(store),
      pods_(std::move(pods)),
      socket_(std::move(socket)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      thread_([this] { accept(); }) {}

SandboxService::~SandboxService() {
  ending_ = true;
  const std::uint64_t one = 1;
  (void)!::write(wake_.get(), &one, sizeof(one));
  thread_.join();
  std::unique_lock lock(mutex_);
  for (const int connection : connections_) ::shutdown(connection, SHUT_RDWR);
  ended_.wait(lock, [this] { return connections_.empty(); });
}

void SandboxService::accept() {
  while (!ending_) {
    std::array<pollfd, 2> waits{{{socket_.get(), POLLIN, 0}, {wake_.get(), POLLIN, 0}}};
    if (::poll(waits.data(), waits.size(), -1) <= 0 || ending_) continue;
    const int connection = ::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (connection < 0) continue;
    const std::lock_guard lock(mutex_);
    if (connections_.size() >= kMostConnections) {
      ::close(connection);
      continue;
    }
    connections_.insert(connection);
    try {
      std::thread([this, connection] { serve(connection); }).detach();
    } catch (const std::system_error&) {  // no thread is left
      connections_.erase(connection);
      ::close(connection);
    }
  }
}

void SandboxService::serve(int connection) {
  Wire wire(connection, connection);
  const auto in = [](auto time) { return std::chrono::steady_clock::now() + time; };
  while (!ending_) {
    const auto request = wire.receive_request(in(kSilence));
    if (!request || !wire.send(answer(store_, pods_, *request), in(kToWrite))) break;
  }
  const std::lock_guard lock(mutex_);
  connections_.erase(connection);
  ::close(connection);
  ended_.notify_all();
}

}  // namespace drover::kube
