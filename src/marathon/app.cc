#include "marathon/app.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/json_text.h"
#include "base/json_writer.h"
#include "base/units.h"
#include "marathon/app_reader.h"
#include "marathon/path.h"
#include "marathon/spellings.h"

namespace drover::marathon {

using nlohmann::json;
using std::chrono::milliseconds;

namespace {

constexpr double kMostCpus = 1000;
constexpr double kMostMebibytes = 1 << 30;
constexpr int kMostGpus = 1024;
constexpr double kMostFactor = 1e6;
constexpr std::size_t kLongestUri = 1024;
constexpr std::size_t kLongestUser = 64;
constexpr std::uint64_t kLeastMemory = 4ULL << 20;
constexpr std::size_t kLongestName = 128;

milliseconds seconds(std::int64_t count) {
  return milliseconds(count * 1000);
}

}  // namespace

AppReader::AppReader(const json& app, const Options& options, std::vector<int> own_ports, Mistakes& mistakes)
    : fields_(app, mistakes),
      options_(options),
      own_ports_(std::move(own_ports)),
      shown_(app.is_object() ? app : json::object()) {
  for (auto field = shown_.begin(); field != shown_.end();)  // a null is as good as nothing
    field = field->is_null() ? shown_.erase(field) : std::next(field);
}

App AppReader::read(const std::string& id, const std::string& dependency_base) {
  names(id, dependency_base);
  resources();
  container();
  command();
  networks();
  environment();
  fetch();
  timing();
  upgrades();
  health_checks();
  readiness_checks();
  constraints();
  kept_as_they_are();
  shown_.erase("instances");
  app_.service.definition = to_text(shown_);
  return std::move(app_);
}

void AppReader::names(const std::string& id, const std::string& dependency_base) {
  auto& service = app_.service;
  service.id = id;
  shown_["id"] = id;
  for (auto& mistake : app_path_mistakes(id)) fields_.refuse("id", std::move(mistake));
  service.task.name = std::string(last_segment(id)).substr(0, kLongestName);

  json dependencies = json::array();
  const auto given = fields_.texts("dependencies").value_or(std::vector<std::string>{});
  for (std::size_t i = 0; i < given.size(); ++i) {
    const auto path = absolute_path(given[i], dependency_base);
    const auto field = fmt::format("dependencies({})", i);
    for (auto& mistake : path_mistakes(path)) fields_.refuse(field, std::move(mistake));
    if (is_within(id, path)) fields_.refuse(field, "must not be the app itself, or a group that it is in");
    if (std::find(service.dependencies.begin(), service.dependencies.end(), path) !=
        service.dependencies.end())
      continue;
    service.dependencies.push_back(path);
    dependencies.push_back(path);
  }
  shown_["dependencies"] = std::move(dependencies);
}

void AppReader::command() {
  auto& task = app_.service.task;
  const auto cmd = fields_.text("cmd", 1);
  const auto args = fields_.texts("args");
  const bool any_args = args && !args->empty();
  if (!any_args) shown_.erase("args");
  if ((cmd && any_args) || (!fields_.has("cmd") && !any_args && !has_image_))
    fields_.refuse("", "AppDefinition must either contain one of 'cmd' or 'args', and/or a 'container'.");
  if (cmd) {
    task.command = {"/bin/sh", "-c", *cmd};
    task.bypass_entrypoint = true;
  } else if (any_args) {
    task.command = *args;
    if (!has_image_ && args->front().empty()) fields_.refuse("args(0)", "must not be an empty string");
  }
}

void AppReader::resources() {
  auto& service = app_.service;
  const auto cpus = fields_.number("cpus", 0.001, kMostCpus).value_or(1);
  const auto mem = fields_.number("mem", 0, kMostMebibytes).value_or(128);
  const auto disk = fields_.number("disk", 0, kMostMebibytes).value_or(0);
  const auto gpus = static_cast<int>(fields_.whole("gpus", 0, kMostGpus).value_or(0));
  service.instances = static_cast<int>(fields_.whole("instances", 0, kMostInstances).value_or(1));
  auto& resources = service.task.resources;
  resources.milli_cpus = std::max<std::int64_t>(std::llround(cpus * 1000), 1);
  resources.memory_bytes = std::max(static_cast<std::uint64_t>(mem * (1 << 20)), kLeastMemory);
  if (gpus > 0) resources.gpus = {{.count = gpus, .filter = {}}};
  shown_["cpus"] = number_json(cpus);
  shown_["mem"] = number_json(mem);
  shown_["disk"] = number_json(disk);
  shown_["gpus"] = gpus;
}

void AppReader::environment() {
  auto& task = app_.service.task;
  json env = json::object();
  if (auto given = fields_.object("env")) {
    for (const auto& [name, value] : fields_.raw("env")->items()) {
      const auto field = "env/" + name;
      if (value.is_object() && value.contains("secret")) {
        fields_.refuse(field, "secrets are not supported: give the value itself");
      } else if (!value.is_string()) {
        fields_.wrong_type(field, "error.expected.jsstring");
      } else if (name.empty() || name.find_first_of(std::string("=\0", 2)) != std::string::npos) {
        fields_.refuse(field, "must be the name of an environment variable");
      } else if (value.get_ref<const std::string&>().find('\0') != std::string::npos) {
        fields_.refuse(field, "must not contain a zero byte");
      } else {
        task.environment.edit()[name] = value.get<std::string>();
        env[name] = value;
      }
    }
  }
  shown_["env"] = std::move(env);
  auto labels = fields_.text_map("labels").value_or(std::map<std::string, std::string>{});
  shown_["labels"] = labels;
  labels.insert(task.labels.begin(),
                task.labels.end());  // what Docker is told in passing does not replace them
  task.labels = std::move(labels);
  if (auto secrets = fields_.object("secrets"); secrets && !fields_.raw("secrets")->empty())
    fields_.refuse("secrets", "secrets are not supported: give the value itself in 'env'");
  app_.user = fields_.text("user", 1);
  if (app_.user && app_.user->size() > kLongestUser)
    fields_.refuse("user", fmt::format("must not be longer than {}", kLongestUser));
}

void AppReader::fetch() {
  json list = json::array();
  auto given = fields_.objects("fetch");
  for (auto& fields : given.value_or(std::vector<Fields>{})) {
    workload::Fetch fetch;
    const auto uri = fields.text("uri", 1);
    if (!fields.has("uri")) fields.wrong_type("uri", "error.path.missing");
    if (uri && uri->size() > kLongestUri) fields.wrong_type("uri", "error.maxLength");
    fetch.uri = uri.value_or("");
    fetch.extract = fields.flag("extract").value_or(true);
    fetch.executable = fields.flag("executable").value_or(false);
    fetch.cache = fields.flag("cache").value_or(false);
    json shown = {{"uri", fetch.uri},
                  {"extract", fetch.extract},
                  {"executable", fetch.executable},
                  {"cache", fetch.cache}};
    if (const auto path = fields.text("destPath")) {
      fetch.output_file = *path;
      shown["destPath"] = *path;
      if (path->starts_with('/') || ("/" + *path + "/").find("/../") != std::string::npos)
        fields.refuse("destPath", "must be a path within the sandbox");
    }
    app_.service.task.fetch.edit().push_back(std::move(fetch));
    list.push_back(std::move(shown));
  }
  shown_["fetch"] = std::move(list);
}

void AppReader::timing() {
  auto& service = app_.service;
  const auto first = fields_.whole("backoffSeconds", 0).value_or(1);
  const auto factor = fields_.number("backoffFactor", 1, kMostFactor).value_or(1.15);
  const auto longest = fields_.whole("maxLaunchDelaySeconds", 0).value_or(300);
  service.backoff = {seconds(first), factor, seconds(longest)};
  shown_["backoffSeconds"] = first;
  shown_["backoffFactor"] = number_json(factor);
  shown_["maxLaunchDelaySeconds"] = longest;
  if (const auto grace = fields_.whole("taskKillGracePeriodSeconds", 0)) {
    service.task.grace = seconds(*grace);
    shown_["taskKillGracePeriodSeconds"] = *grace;
  }
}

void AppReader::upgrades() {
  auto& service = app_.service;
  json shown = json::object();
  const auto part = [&](const char* name) {
    auto strategy = fields_.object("upgradeStrategy");
    const auto value =
        strategy ? strategy->number(name, std::numeric_limits<double>::lowest(), 1e300).value_or(1) : 1;
    if (value > 1) strategy->refuse(name, "is greater than 1");
    if (value < 0) strategy->refuse(name, "is less than 0");
    shown[name] = number_json(value);
    return value;
  };
  service.minimum_health = part("minimumHealthCapacity");
  service.maximum_over_capacity = part("maximumOverCapacity");
  shown_["upgradeStrategy"] = std::move(shown);

  constexpr std::array<std::string_view, 2> kSelections = {"YOUNGEST_FIRST", "OLDEST_FIRST"};
  const auto selection = fields_.choice("killSelection", kSelections).value_or(0);
  service.oldest_first = selection == 1;
  shown_["killSelection"] = kSelections[selection];
}

/// What means nothing on one machine: it is checked, shown, and has no effect.
void AppReader::kept_as_they_are() {
  shown_["executor"] = fields_.text("executor").value_or("");
  shown_["requirePorts"] = fields_.flag("requirePorts").value_or(false);
  shown_["role"] = fields_.text("role").value_or("*");
  const auto roles = fields_.texts("acceptedResourceRoles");
  if (roles && roles->empty()) fields_.refuse("acceptedResourceRoles", "must not be empty");
  shown_["acceptedResourceRoles"] = roles.value_or(std::vector<std::string>{"*"});
  if (const auto* strategy = fields_.raw("unreachableStrategy"); strategy == nullptr) {
    shown_["unreachableStrategy"] = {{"inactiveAfterSeconds", 0}, {"expungeAfterSeconds", 0}};
  } else if (!strategy->is_string()) {
    auto fields = fields_.object("unreachableStrategy");
    if (!fields) return;
    const auto inactive = fields->whole("inactiveAfterSeconds", 0).value_or(0);
    const auto expunge = fields->whole("expungeAfterSeconds", 0).value_or(inactive);
    if (expunge < inactive) fields->refuse("", "inactiveAfterSeconds must be less than expungeAfterSeconds");
    shown_["unreachableStrategy"] = {{"inactiveAfterSeconds", inactive}, {"expungeAfterSeconds", expunge}};
  } else if (*strategy != "disabled") {
    fields_.wrong_type("unreachableStrategy", "error.unknown.enum.literal");
  }
  (void)fields_.flag("tty");
  (void)fields_.object("residency");
  (void)fields_.object("resourceLimits");
  (void)fields_.object("check");
}

namespace {

Decoded<App> read(const json& app, const std::string& id, const std::string& dependency_base,
                  const Options& options, std::vector<int> own_ports, Mistakes& mistakes) {
  if (!app.is_object()) return tl::unexpected(mistakes.refusal());
  AppReader reader(app, options, std::move(own_ports), mistakes);
  auto result = reader.read(id, dependency_base);
  if (!mistakes.empty()) return tl::unexpected(mistakes.refusal());
  return result;
}

/// The absolute id; some id when it has none, which is a mistake.
std::string id_of(const json& app, std::string_view base, Mistakes& mistakes) {
  Fields fields(app, mistakes);
  if (app.is_object() && !fields.has("id")) fields.wrong_type("id", "error.path.missing");
  return absolute_path(fields.text("id").value_or("unnamed"), base);
}

/// Puts what `update` says in place of what `app` says. Both are in today's spelling.
void merge(json& app, const json& update) {
  const auto says = [&](const char* name) { return update.contains(name) && !update[name].is_null(); };
  if (says("cmd") && !says("args")) app.erase("args");
  if (says("args") && !says("cmd")) app.erase("cmd");
  if (says("networks")) {
    const auto& networks = update["networks"];
    const bool host = networks.is_array() && !networks.empty() && networks.front().is_object() &&
                      networks.front().value("mode", json()) == "host";
    if (!host)
      app.erase("portDefinitions");
    else if (app.contains("container"))
      app["container"].erase("portMappings");
  }
  for (const auto& [name, value] : update.items())
    if (!value.is_null()) app[name] = value;
}

}  // namespace

Decoded<App> decode_app(const json& body, const Options& options, std::vector<int> own_ports) {
  Mistakes mistakes;
  const auto app = modern(body, mistakes);
  const auto id = id_of(app, "/", mistakes);
  return read(app, id, id, options, std::move(own_ports), mistakes);
}

Decoded<App> decode_app_of(std::string_view group, const json& body, const Options& options,
                           std::vector<int> own_ports) {
  Mistakes mistakes;
  const auto app = modern(body, mistakes);
  const auto id = id_of(app, group, mistakes);
  return read(app, id, std::string(group), options, std::move(own_ports), mistakes);
}

Decoded<App> update_app(const workload::Service& existing, const json& update, const Options& options) {
  Mistakes mistakes;
  const auto change = modern(update, mistakes);
  Fields fields(change, mistakes);
  if (!change.is_object()) return tl::unexpected(mistakes.refusal());
  if (const auto id = fields.text("id"); id && absolute_path(*id, parent_path(existing.id)) != existing.id)
    fields.refuse("id", fmt::format("must be '{}': an app cannot be renamed", existing.id));
  auto app = json::parse(existing.definition);
  app["instances"] = existing.instances;
  merge(app, change);
  return read(app, existing.id, existing.id, options, service_ports(existing), mistakes);
}

std::optional<std::string> user_of(const workload::Service& service) {
  const auto definition = json::parse(service.definition, nullptr, false);
  if (!definition.is_object() || !definition.contains("user")) return std::nullopt;
  return definition["user"].get<std::string>();
}

std::vector<std::string> own_dependencies(const workload::Service& service) {
  const auto definition = json::parse(service.definition, nullptr, false);
  return definition.is_object() ? definition.value("dependencies", std::vector<std::string>{})
                                : std::vector<std::string>{};
}

std::string show(const workload::Service& service) {
  std::string text;
  JsonWriter writer(text);
  writer.begin_object();
  write_fields(writer, service);
  writer.end_object();
  return text;
}

void write_fields(JsonWriter& writer, const workload::Service& service) {
  const std::string_view definition = service.definition;
  const auto inside = definition.substr(1, definition.size() - 2);
  if (!inside.empty()) writer.raw(inside);
  writer.field("instances", service.instances);
  writer.field("version", format_time(service.version));
  writer.key("versionInfo");
  writer.begin_object();
  writer.field("lastScalingAt", format_time(service.last_scaling_at));
  writer.field("lastConfigChangeAt", format_time(service.last_config_change_at));
  writer.end_object();
}

std::vector<int> service_ports(const workload::Service& service) {
  const auto app = json::parse(service.definition, nullptr, false);
  if (!app.is_object()) return {};
  std::vector<int> ports;
  const auto collect = [&](const json& list, const char* name) {
    for (const auto& port : list)
      if (const auto number = port.value(name, 0); number != 0) ports.push_back(number);
  };
  if (app.contains("portDefinitions")) collect(app["portDefinitions"], "port");
  if (app.contains("container") && app["container"].contains("portMappings"))
    collect(app["container"]["portMappings"], "servicePort");
  return ports;
}

}  // namespace drover::marathon
