#include "container/docker/engine.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <boost/url/encode.hpp>
#include <boost/url/rfc/unreserved_chars.hpp>
#include <charconv>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "base/shorten.h"
#include "container/docker/pull_progress.h"

namespace drover::container::docker {
namespace {

using nlohmann::json;

/// Versions of the API: what is asked for here means the same from the one to the other.
constexpr std::pair<int, int> kOldest = {1, 40};
constexpr std::pair<int, int> kNewest = {1, 51};

constexpr auto kShortTimeout = std::chrono::seconds(60);
constexpr auto kStopPoll = std::chrono::milliseconds(200);
constexpr std::size_t kLongestImageName = 4096;

std::optional<std::pair<int, int>> parse_api_version(std::string_view text) {
  std::pair<int, int> version;
  const auto* const end = text.data() + text.size();
  const auto major = std::from_chars(text.data(), end, version.first);
  if (major.ec != std::errc() || major.ptr == end || *major.ptr != '.') return std::nullopt;
  const auto minor = std::from_chars(major.ptr + 1, end, version.second);
  if (minor.ec != std::errc() || minor.ptr != end) return std::nullopt;
  return version;
}

std::string query(std::string_view text) {
  return boost::urls::encode(boost::core::string_view(text.data(), text.size()),
                             boost::urls::unreserved_chars);
}

std::string filters(const json& value) {
  return query(to_text(value));
}

ErrorKind kind_of(int status) {
  if (status == 404) return ErrorKind::kNotFound;
  if (status == 409) return ErrorKind::kConflict;
  if (status == 401 || status == 403) return ErrorKind::kPermissionDenied;
  return status >= 500 ? ErrorKind::kUnavailable : ErrorKind::kInvalid;
}

Failure refusal(int status, std::string_view body, std::string_view doing) {
  return fail(kind_of(status), fmt::format("The Docker Engine could not {}: {}", doing, parse_refusal(body)));
}

Status check(const Answer& answer, std::string_view doing) {
  if (answer.status / 100 == 2) return {};
  return refusal(answer.status, answer.body, doing);
}

}  // namespace

Result<std::string> negotiate(std::string_view oldest, std::string_view newest) {
  const auto highest = parse_api_version(newest);
  if (!highest)
    return fail(ErrorKind::kUnsupported,
                "What answers at the socket of the Docker Engine does not say its version",
                "name the socket of a Docker Engine");
  if (*highest < kOldest)
    return fail(ErrorKind::kUnsupported,
                fmt::format("The Docker Engine speaks version {} of its API, and {}.{} is needed", newest,
                            kOldest.first, kOldest.second),
                "update it to Docker 19.03 or newer");
  const auto lowest = parse_api_version(oldest).value_or(kOldest);
  const auto chosen = std::max(std::min(*highest, kNewest), lowest);
  return fmt::format("{}.{}", chosen.first, chosen.second);
}

Result<ImageName> parse_image_name(std::string_view reference) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-' || c == '/' || c == ':' || c == '@';
  };
  const bool good = !reference.empty() && reference.size() <= kLongestImageName &&
                    std::all_of(reference.begin(), reference.end(), plain) &&
                    reference.find("//") == std::string_view::npos &&
                    reference.find("..") == std::string_view::npos && reference.front() != '/' &&
                    reference.front() != ':' && reference.back() != '/';
  if (!good)
    return fail(ErrorKind::kInvalid,
                fmt::format("'{}' cannot be the name of an image of a Docker Engine",
                            shortened(std::string(reference), 200)),
                "name it as 'docker images' does: name:tag", "/image");
  if (const auto at = reference.find('@'); at != std::string_view::npos)
    return ImageName{std::string(reference.substr(0, at)), std::string(reference.substr(at + 1))};
  const auto last = reference.rfind('/');
  const auto colon = reference.find(':', last == std::string_view::npos ? 0 : last);
  if (colon == std::string_view::npos) return ImageName{std::string(reference), "latest"};
  return ImageName{std::string(reference.substr(0, colon)), std::string(reference.substr(colon + 1))};
}

Result<Engine> Engine::find(const std::string& socket) {
  DROVER_TRY(const auto answer, call(socket, {.target = "/version"}, kShortTimeout));
  DROVER_CHECK_OK(check(answer, "say its version"));
  DROVER_TRY(const auto version, parse_version(answer.body));
  DROVER_TRY(auto api_version, negotiate(version.oldest_api, version.newest_api));
  return Engine(socket, std::move(api_version));
}

Request Engine::request(std::string method, const std::string& target, std::string body) const {
  Request made;
  made.method = std::move(method);
  made.target = fmt::format("/v{}{}", api_version_, target);
  made.body = std::move(body);
  return made;
}

Result<Answer> Engine::ask(std::string method, const std::string& target, std::string body) const {
  return call(socket_, request(std::move(method), target, std::move(body)), kShortTimeout);
}

Result<Exchange> Engine::begin(const Request& request) const {
  DROVER_TRY(auto exchange, Exchange::begin(socket_, request));
  DROVER_CHECK_OK(await_head(exchange, kShortTimeout));
  return exchange;
}

Result<Exchange> Engine::stream(const Request& request, std::string_view doing) const {
  DROVER_TRY(auto exchange, begin(request));
  if (exchange.status() == 101 || exchange.status() == 200) return exchange;
  while (!exchange.ended() && await_head(exchange, kShortTimeout) && exchange.receive()) {
    pollfd waited{exchange.fd(), POLLIN, 0};
    if (::poll(&waited, 1, 5000) <= 0) break;
  }
  return refusal(exchange.status(), exchange.take(), doing);
}

Result<Version> Engine::version() const {
  DROVER_TRY(const auto answer, ask("GET", "/version"));
  DROVER_CHECK_OK(check(answer, "say its version"));
  return parse_version(answer.body);
}

Result<std::vector<std::string>> Engine::shortcomings() const {
  DROVER_TRY(const auto answer, ask("GET", "/info"));
  DROVER_CHECK_OK(check(answer, "describe itself"));
  return parse_shortcomings(answer.body);
}

Result<std::optional<ImageFacts>> Engine::inspect_image(const std::string& reference) const {
  DROVER_CHECK_OK(parse_image_name(reference).map([](auto&&) {}));
  DROVER_TRY(const auto answer, ask("GET", fmt::format("/images/{}/json", reference)));
  if (answer.status == 404) return std::nullopt;
  DROVER_CHECK_OK(check(answer, fmt::format("look at the image '{}'", reference)));
  DROVER_TRY(auto facts, parse_image(answer.body));
  return std::optional(std::move(facts));
}

Status Engine::pull(const std::string& reference, const std::string& authorization,
                    const std::function<void(const std::string&)>& progress,
                    const std::stop_token& stop) const {
  DROVER_TRY(const auto image, parse_image_name(reference));
  auto wanted =
      request("POST", fmt::format("/images/create?fromImage={}&tag={}", query(image.name), query(image.tag)));
  if (!authorization.empty()) wanted.headers["X-Registry-Auth"] = authorization;
  auto begun = stream(wanted, fmt::format("pull '{}'", reference));
  if (!begun) {
    begun.error().kind = kind_of_pull_failure(begun.error().message, begun.error().kind);
    return Failure(std::move(begun).error());
  }
  auto& exchange = *begun;
  PullProgress pulled(reference, progress);
  while (true) {
    DROVER_CHECK_OK(pulled.read(exchange.take()));
    if (exchange.ended()) return pulled.finish();
    if (stop.stop_requested()) return fail(ErrorKind::kConflict, "It was stopped before its image had come");
    pollfd waited{exchange.fd(), POLLIN, 0};
    if (::poll(&waited, 1, static_cast<int>(kStopPoll.count())) > 0) DROVER_CHECK_OK(exchange.receive());
  }
}

Result<std::string> Engine::create(const std::string& name, const std::string& body) const {
  DROVER_TRY(const auto answer, ask("POST", "/containers/create?name=" + query(name), body));
  DROVER_CHECK_OK(check(answer, "create the container"));
  return parse_id(answer.body);
}

Status Engine::start(const std::string& id, std::chrono::milliseconds timeout) const {
  DROVER_TRY(const auto answer,
             call(socket_, request("POST", fmt::format("/containers/{}/start", id)), timeout));
  return check(answer, "start the container");
}

Status Engine::kill(const std::string& id, std::string_view signal) const {
  DROVER_TRY(const auto answer, ask("POST", fmt::format("/containers/{}/kill?signal={}", id, signal)));
  if (answer.status == 404 || answer.status == 409) return {};
  return check(answer, "send the container a signal");
}

Result<std::optional<ContainerState>> Engine::inspect(const std::string& id) const {
  DROVER_TRY(const auto answer, ask("GET", fmt::format("/containers/{}/json", id)));
  if (answer.status == 404) return std::nullopt;
  DROVER_CHECK_OK(check(answer, "look at the container"));
  DROVER_TRY(auto state, parse_container(answer.body));
  return std::optional(std::move(state));
}

Status Engine::remove(const std::string& id) const {
  DROVER_TRY(const auto answer, ask("DELETE", fmt::format("/containers/{}?force=true&v=true", id)));
  if (answer.status == 404) return {};
  return check(answer, "remove the container");
}

Result<std::vector<std::string>> Engine::find_containers(
    const std::map<std::string, std::string>& labels) const {
  auto wanted = json::array();
  for (const auto& [name, value] : labels) wanted.push_back(name + "=" + value);
  DROVER_TRY(const auto answer,
             ask("GET", "/containers/json?all=true&filters=" + filters({{"label", wanted}})));
  DROVER_CHECK_OK(check(answer, "list its containers"));
  return parse_ids(answer.body);
}

Result<std::string> Engine::copy_out(const std::string& id, const std::string& path) const {
  DROVER_TRY(auto answer, ask("GET", fmt::format("/containers/{}/archive?path={}", id, query(path))));
  if (answer.status == 404) return "";
  DROVER_CHECK_OK(check(answer, fmt::format("read '{}'", path)));
  return std::move(answer.body);
}

Result<std::optional<PathStat>> Engine::stat(const std::string& id, const std::string& path) const {
  DROVER_TRY(const auto exchange,
             begin(request("HEAD", fmt::format("/containers/{}/archive?path={}", id, query(path)))));
  if (exchange.status() == 404) return std::nullopt;
  DROVER_CHECK_OK(check({exchange.status(), "", ""}, fmt::format("look at '{}'", path)));
  DROVER_TRY(auto found, parse_path_stat(exchange.header("X-Docker-Container-Path-Stat")));
  return std::optional(std::move(found));
}

Result<bool> Engine::happened(std::string_view event, const std::string& id, TimePoint since) const {
  const auto seconds = [](TimePoint time) {
    const auto ms = time.time_since_epoch().count();
    return fmt::format("{}.{:03}000000", ms / 1000, ms % 1000);
  };
  DROVER_TRY(
      const auto answer,
      ask("GET", fmt::format("/events?since={}&until={}&filters={}", seconds(since), seconds(wall_clock()),
                             filters({{"container", {id}}, {"event", {std::string(event)}}}))));
  DROVER_CHECK_OK(check(answer, "say what happened to the container"));
  return answer.body.find_first_not_of(" \r\n") != std::string::npos;
}

Result<Exchange> Engine::attach(const std::string& id) const {
  auto wanted = request("POST", fmt::format("/containers/{}/attach?stream=true&stdout=true&stderr=true", id));
  wanted.upgrade = "tcp";
  return stream(wanted, "attach to the container");
}

Result<Exchange> Engine::follow_logs(const std::string& id, std::chrono::nanoseconds since_epoch) const {
  constexpr std::int64_t kBillion = 1'000'000'000;
  return stream(
      request("GET", fmt::format("/containers/{}/logs?follow=true&stdout=true&stderr=true&since={}.{:09}", id,
                                 since_epoch.count() / kBillion, since_epoch.count() % kBillion)),
      "read the container's output");
}

Result<Exchange> Engine::wait(const std::string& id) const {
  return Exchange::begin(socket_, request("POST", fmt::format("/containers/{}/wait", id)));
}

Result<std::string> Engine::create_exec(const std::string& container, const std::string& body) const {
  DROVER_TRY(const auto answer, ask("POST", fmt::format("/containers/{}/exec", container), body));
  DROVER_CHECK_OK(check(answer, "run the command"));
  return parse_id(answer.body);
}

Result<Exchange> Engine::start_exec(const std::string& exec, bool tty) const {
  auto wanted =
      request("POST", fmt::format("/exec/{}/start", exec), json{{"Detach", false}, {"Tty", tty}}.dump());
  wanted.upgrade = "tcp";
  return stream(wanted, "run the command");
}

Result<ExecState> Engine::inspect_exec(const std::string& exec) const {
  DROVER_TRY(const auto answer, ask("GET", fmt::format("/exec/{}/json", exec)));
  DROVER_CHECK_OK(check(answer, "say how the command ended"));
  return parse_exec(answer.body);
}

Status Engine::resize_exec(const std::string& exec, int rows, int columns) const {
  DROVER_TRY(const auto answer, ask("POST", fmt::format("/exec/{}/resize?h={}&w={}", exec, rows, columns)));
  return check(answer, "resize the terminal");
}

}  // namespace drover::container::docker
