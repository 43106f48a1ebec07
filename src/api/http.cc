#include "api/http.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/url/parse.hpp>
#include <boost/url/url_view.hpp>
#include <charconv>
#include <nlohmann/json.hpp>

#include "base/decode.h"
#include "base/instant.h"
#include "base/json_text.h"

namespace drover::api {

using nlohmann::json;

Status check_upgrade(const Request& request, const std::string& protocol) {
  const auto upgrade = request.headers.find("upgrade");
  if (upgrade != request.headers.end() && upgrade->second == protocol) return {};
  return fail(ErrorKind::kInvalid, "This is done over an upgraded connection",
              fmt::format("send 'Connection: Upgrade' and 'Upgrade: {}'", protocol));
}

Response upgrade_response(const std::string& protocol,
                          std::function<asio::awaitable<void>(Duplex&)> conversation) {
  Response response;
  response.status = 101;
  response.content_type = "";
  response.headers = {{"Connection", "Upgrade"}, {"Upgrade", protocol}};
  response.upgrade = std::move(conversation);
  return response;
}

Response json_response(const json& value, int status) {
  Response response;
  response.status = status;
  // File names and messages of other programs may hold bytes that are no UTF-8; they are shown as U+FFFD.
  response.body = to_text(value, 2) + "\n";
  return response;
}

Response error_response(const Error& error, std::optional<int> status) {
  const auto& info = error_kind_info(error.kind);
  auto response = json_response(
      {{"error",
        {{"kind", info.name}, {"message", error.message}, {"hint", error.hint}, {"path", error.path}}}},
      status.value_or(info.http_status));
  if (error.kind == ErrorKind::kUnauthenticated)  // RFC 9110, 15.5.2
    response.headers.emplace_back("WWW-Authenticate", "Bearer realm=\"drover\", Basic realm=\"drover\"");
  return response;
}

namespace {

constexpr std::string_view kAbsoluteForm = "http://";

/// What is behind the authority; the target itself when it has none.
std::string path_and_query(std::string_view target) {
  if (!target.starts_with(kAbsoluteForm)) return std::string(target);
  target.remove_prefix(kAbsoluteForm.size() + target_authority(target).size());
  return target.starts_with('/') ? std::string(target) : "/" + std::string(target);
}

/// Escapes what RFC 3986 wants to be escaped in a query and few programs do.
std::string with_strict_query(std::string_view target) {
  const auto query = std::min(target.find('?'), target.size());
  std::string text(target.substr(0, query));
  for (const char c : target.substr(query))
    if (std::string_view("[]{}|").find(c) != std::string_view::npos)
      text += fmt::format("%{:02X}", static_cast<unsigned>(c));
    else
      text += c;
  return text;
}

}  // namespace

std::string_view target_authority(std::string_view target) {
  if (!target.starts_with(kAbsoluteForm)) return {};
  target.remove_prefix(kAbsoluteForm.size());
  return target.substr(0, target.find_first_of("/?"));
}

Status parse_target(std::string_view target, Request& request) {
  const auto text = with_strict_query(path_and_query(target));
  const auto url = boost::urls::parse_origin_form(text);
  if (!url) return fail(ErrorKind::kInvalid, "The request target is not a path with an optional query");
  for (const auto& segment : url->segments()) request.segments.emplace_back(segment);
  for (const auto& param : url->params()) {
    request.query.insert_or_assign(param.key, param.value);
    request.query_list.emplace_back(param.key, param.value);
  }
  return {};
}

const std::string* Query::find(const std::string& name) {
  known_.insert(name);
  const auto found = query_->find(name);
  return found == query_->end() ? nullptr : &found->second;
}

std::string Query::text(const std::string& name, std::string fallback) {
  const auto* value = find(name);
  return value == nullptr ? std::move(fallback) : *value;
}

std::int64_t Query::integer(const std::string& name, std::int64_t min, std::int64_t max,
                            std::int64_t fallback) {
  const auto* text = find(name);
  if (text == nullptr) return fallback;
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error == std::errc() && end == text->data() + text->size() && value >= min && value <= max)
    return value;
  mistakes_.push_back({ErrorKind::kInvalid,
                       fmt::format("expected a whole number from {} to {}, found '{}'", min, max, *text), "",
                       "?" + name});
  return fallback;
}

bool Query::boolean(const std::string& name, bool fallback) {
  const auto* text = find(name);
  if (text == nullptr) return fallback;
  if (*text == "true" || *text == "false") return *text == "true";
  mistakes_.push_back(
      {ErrorKind::kInvalid, fmt::format("expected true or false, found '{}'", *text), "", "?" + name});
  return fallback;
}

std::vector<std::string> Query::texts(const std::string& name,
                                      const std::function<Status(const std::string&)>& check) {
  known_.insert(name);
  std::vector<std::string> texts;
  for (const auto& [key, value] : *list_) {
    if (key != name) continue;
    if (auto good = check(value); !good) refuse(name, good.error());
    texts.push_back(value);
  }
  return texts;
}

std::optional<TimePoint> Query::time(const std::string& name) {
  const auto* text = find(name);
  if (text == nullptr) return std::nullopt;
  const auto time = parse_instant(*text);
  if (!time) refuse(name, parse_time(*text).error());
  return time;
}

void Query::refuse(const std::string& name, Error error) {
  error.path = "?" + name;
  mistakes_.push_back(std::move(error));
}

Status Query::finish() {
  for (const auto& [name, value] : *query_) {
    if (known_.contains(name)) continue;
    const auto meant = nearest(name, known_);
    mistakes_.push_back({ErrorKind::kInvalid, fmt::format("unknown parameter '{}'", name),
                         meant.empty() ? "" : fmt::format("did you mean '{}'?", meant), "?" + name});
  }
  if (mistakes_.empty()) return {};
  return Failure(join_mistakes(mistakes_, "The query"));
}

}  // namespace drover::api
