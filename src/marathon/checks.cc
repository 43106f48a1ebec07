// Health checks, readiness checks and constraints of an app.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "marathon/app_reader.h"

namespace drover::marathon {

using nlohmann::json;
using std::chrono::milliseconds;
using workload::CheckKind;
using workload::ConstraintKind;

namespace {

struct Protocol {
  std::string_view name;
  CheckKind kind;
  bool by_mesos;  ///< which made them beside the task; at most one of an app
};
constexpr std::array<Protocol, 7> kCheckProtocols = {{{"HTTP", CheckKind::kHttp, false},
                                                      {"HTTPS", CheckKind::kHttps, false},
                                                      {"TCP", CheckKind::kTcp, false},
                                                      {"COMMAND", CheckKind::kCommand, true},
                                                      {"MESOS_TCP", CheckKind::kTcp, true},
                                                      {"MESOS_HTTP", CheckKind::kHttp, true},
                                                      {"MESOS_HTTPS", CheckKind::kHttps, true}}};
constexpr std::size_t kMostChecks = 64;
constexpr std::size_t kMostConstraints = 64;
constexpr std::size_t kLongestPattern = 1024;

constexpr std::array<std::pair<std::string_view, ConstraintKind>, 7> kOperators = {
    {{"UNIQUE", ConstraintKind::kUnique},
     {"CLUSTER", ConstraintKind::kCluster},
     {"GROUP_BY", ConstraintKind::kGroupBy},
     {"LIKE", ConstraintKind::kLike},
     {"UNLIKE", ConstraintKind::kUnlike},
     {"MAX_PER", ConstraintKind::kMaxPer},
     {"IS", ConstraintKind::kIs}}};

bool is_number(const std::string& text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && value >= 0;
}

/// Whether it can be understood is control's to say, which matches by it.
bool is_pattern(const std::string& text) {
  return !text.empty() && text.size() <= kLongestPattern;
}

std::size_t protocol_of(Fields& fields) {
  std::array<std::string_view, kCheckProtocols.size()> names;
  std::transform(kCheckProtocols.begin(), kCheckProtocols.end(), names.begin(),
                 [](const auto& p) { return p.name; });
  return fields.choice("protocol", names).value_or(0);
}

milliseconds seconds(Fields& fields, json& shown, const char* name, std::int64_t least,
                     std::int64_t otherwise) {
  const auto count = fields.whole(name, least).value_or(otherwise);
  shown[name] = count;
  return milliseconds(count * 1000);
}

}  // namespace

void AppReader::health_checks() {
  json list = json::array();
  int by_mesos = 0;
  auto given = fields_.objects("healthChecks");
  if (given && given->size() > kMostChecks) {
    fields_.refuse("healthChecks", fmt::format("must have at most {} checks", kMostChecks));
    given.reset();
  }
  for (auto& fields : given.value_or(std::vector<Fields>{})) {
    json shown = json::object();
    app_.service.health_checks.push_back(health_check(fields, shown));
    const auto chosen = shown["protocol"].get<std::string>();
    by_mesos += std::any_of(kCheckProtocols.begin(), kCheckProtocols.end(),
                            [&](const auto& p) { return p.by_mesos && p.name == chosen; });
    list.push_back(std::move(shown));
  }
  if (by_mesos > 1)
    fields_.refuse("healthChecks", "AppDefinition can contain at most one Mesos health check");
  shown_["healthChecks"] = std::move(list);
}

workload::HealthCheck AppReader::health_check(Fields& fields, json& shown) {
  workload::HealthCheck check;
  const auto& protocol = kCheckProtocols[protocol_of(fields)];
  check.kind = protocol.kind;
  shown["protocol"] = protocol.name;
  check.grace_period = seconds(fields, shown, "gracePeriodSeconds", 0, 300);
  check.interval = seconds(fields, shown, "intervalSeconds", 1, 60);
  check.timeout = seconds(fields, shown, "timeoutSeconds", 1, 20);
  check.delay = seconds(fields, shown, "delaySeconds", 0, 15);
  check.max_consecutive_failures = static_cast<int>(fields.whole("maxConsecutiveFailures", 0).value_or(3));
  shown["maxConsecutiveFailures"] = check.max_consecutive_failures;
  if (check.kind == CheckKind::kCommand) {
    auto command = fields.object("command");
    const auto value = command ? command->text("value", 1) : std::nullopt;
    if (!fields.has("command")) fields.refuse("", "COMMAND health checks need a 'command'");
    if (command && !command->has("value")) command->wrong_type("value", "error.path.missing");
    if (value) check.command = {"/bin/sh", "-c", *value};
    shown["command"] = {{"value", value.value_or("")}};
    return check;
  }
  if (fields.has("command")) fields.refuse("command", "is only for COMMAND health checks");
  constexpr std::array<std::string_view, 2> kFamilies = {"IPv4", "IPv6"};
  const auto family = fields.choice("ipProtocol", kFamilies).value_or(0);
  check.ipv6 = family == 1;
  shown["ipProtocol"] = kFamilies[family];
  if (check.kind != CheckKind::kTcp) {
    check.path = fields.text("path").value_or("/");
    if (const auto trouble = workload::path_trouble(check.path); !trouble.empty())
      fields.refuse("path", std::string(trouble));
    check.ignore_http_1xx = fields.flag("ignoreHttp1xx").value_or(false);
    shown["path"] = check.path;
    shown["ignoreHttp1xx"] = check.ignore_http_1xx;
  }
  health_check_port(fields, shown, check);
  return check;
}

void AppReader::health_check_port(Fields& fields, json& shown, workload::HealthCheck& check) {
  if (fields.has("port")) {
    check.port = static_cast<int>(fields.whole("port", 0, kMaxPort).value_or(0));
    shown["port"] = check.port;
    if (fields.has("portIndex"))
      fields.refuse("", "HealthCheck must specify either a port or a portIndex, not both");
    if (check.port != 0) return;
    shown.erase("port");
  }
  check.port_index = static_cast<int>(fields.whole("portIndex", 0).value_or(0));
  shown["portIndex"] = check.port_index;
  if (check.port_index >= static_cast<int>(app_.service.task.network.ports.size()))
    fields.refuse("",
                  "Health check port indices must address an element of the ports array or container port "
                  "mappings.");
}

void AppReader::ready_statuses(Fields& fields, workload::ReadinessCheck& check) {
  const auto* codes = fields.raw("httpStatusCodesForReady");
  if (codes == nullptr) return;
  check.ready_statuses.clear();
  if (!codes->is_array()) fields.wrong_type("httpStatusCodesForReady", "error.expected.jsarray");
  for (const auto& code : codes->is_array() ? *codes : json::array()) {
    if (code.is_number_integer() && code >= 100 && code <= 999)
      check.ready_statuses.push_back(code.get<int>());
    else
      fields.refuse("httpStatusCodesForReady", "must have only numbers from 100 to 999");
  }
  if (check.ready_statuses.empty()) fields.refuse("httpStatusCodesForReady", "must not be empty");
}

void AppReader::readiness_checks() {
  json list = json::array();
  auto given = fields_.objects("readinessChecks");
  if (given && given->size() > 1) fields_.refuse("readinessChecks", "must have at most one element");
  for (auto& fields : given.value_or(std::vector<Fields>{})) {
    workload::ReadinessCheck check;
    json shown = json::object();
    constexpr std::array<std::string_view, 2> kSchemes = {"HTTP", "HTTPS"};
    const auto scheme = fields.choice("protocol", kSchemes).value_or(0);
    check.https = scheme == 1;
    check.name = fields.text("name", 1).value_or("readinessCheck");
    check.path = fields.text("path", 1).value_or("/");
    check.interval = seconds(fields, shown, "intervalSeconds", 1, 30);
    check.timeout = seconds(fields, shown, "timeoutSeconds", 1, 10);
    check.preserve_last_response = fields.flag("preserveLastResponse").value_or(false);
    if (const auto trouble = workload::path_trouble(check.path); !trouble.empty())
      fields.refuse("path", std::string(trouble));
    if (check.timeout >= check.interval) fields.refuse("timeoutSeconds", "must be less than intervalSeconds");
    ready_statuses(fields, check);
    const auto port_name = fields.text("portName").value_or("http-api");
    const auto& ports = app_.service.task.network.ports;
    const auto port =
        std::find_if(ports.begin(), ports.end(), [&](const auto& each) { return each.name == port_name; });
    if (port == ports.end())
      fields.refuse("portName", fmt::format("no port of the app is named '{}'", port_name));
    else
      check.port_index = static_cast<int>(port - ports.begin());
    shown.update({{"name", check.name},
                  {"protocol", kSchemes[scheme]},
                  {"path", check.path},
                  {"portName", port_name},
                  {"httpStatusCodesForReady", check.ready_statuses},
                  {"preserveLastResponse", check.preserve_last_response}});
    app_.service.readiness = std::move(check);
    list.push_back(std::move(shown));
  }
  shown_["readinessChecks"] = std::move(list);
}

void AppReader::constraints() {
  json list = json::array();
  const auto* given = fields_.raw("constraints");
  if (given != nullptr && !given->is_array()) fields_.wrong_type("constraints", "error.expected.jsarray");
  if (given != nullptr && given->is_array() && given->size() > kMostConstraints)
    return fields_.refuse("constraints", fmt::format("must have at most {} of them", kMostConstraints));
  for (std::size_t i = 0; given != nullptr && given->is_array() && i < given->size(); ++i) {
    const auto& words = (*given)[i];
    const auto path = fmt::format("constraints({})", i);
    const bool texts = words.is_array() && std::all_of(words.begin(), words.end(),
                                                       [](const json& word) { return word.is_string(); });
    if (!texts)
      fields_.wrong_type(path, words.is_array() ? "error.expected.jsstring" : "error.expected.jsarray");
    else
      constraint(path, words.get<std::vector<std::string>>());
    list.push_back(words);
  }
  shown_["constraints"] = std::move(list);
}

void AppReader::constraint(const std::string& path, const std::vector<std::string>& words) {
  if (words.size() != 2 && words.size() != 3)
    return fields_.refuse(path, "Each constraint must have either 2 or 3 fields");
  const auto found = std::find_if(kOperators.begin(), kOperators.end(),
                                  [&](const auto& each) { return each.first == words[1]; });
  if (words[0].empty()) fields_.refuse(path, "must name an attribute");
  if (found == kOperators.end())
    return fields_.refuse(
        path, "operator must be one of the following UNIQUE, CLUSTER, GROUP_BY, LIKE, MAX_PER, UNLIKE or IS");
  workload::PlacementConstraint constraint;
  constraint.attribute = words[0] == "@hostname" ? "hostname" : words[0];
  constraint.kind = found->second;
  constraint.value = words.size() == 3 ? words[2] : "";
  const auto& value = constraint.value;
  switch (constraint.kind) {
    case ConstraintKind::kUnique:
      if (words.size() == 3) fields_.refuse(path, "UNIQUE does not accept a value");
      break;
    case ConstraintKind::kGroupBy:
      if (words.size() == 3 && !value.empty() && !is_number(value))
        fields_.refuse(path, "GROUP_BY requires an integer value");
      break;
    case ConstraintKind::kMaxPer:
      if (!is_number(value)) fields_.refuse(path, "MAX_PER requires an integer value");
      break;
    case ConstraintKind::kLike:
    case ConstraintKind::kUnlike:
      if (!is_pattern(value))
        fields_.refuse(path, "LIKE and UNLIKE require a non-empty, regular expression value");
      break;
    case ConstraintKind::kIs:
      if (value.empty()) fields_.refuse(path, "IS requires a value");
      break;
    case ConstraintKind::kCluster:
      break;
  }
  app_.service.constraints.push_back(std::move(constraint));
}

}  // namespace drover::marathon
