// Apps, as Marathon's API has them: ls, inspect, scale, restart, rollback, rm, history. Their deployments are
// in deployments.cc.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/units.h"
#include "cli/commands/commands.h"
#include "cli/printable.h"
#include "cli/services/api.h"
#include "cli/services/app_state.h"
#include "cli/services/changes.h"
#include "cli/services/deploy.h"
#include "cli/services/failure.h"
#include "cli/services/fields.h"
#include "cli/table.h"
#include "cli/usage.h"
#include "marathon/path.h"

namespace drover::cli {
namespace {

using nlohmann::json;

struct AppOptions {
  std::string app;
  int instances = 0;
  std::string version;
  DeployOptions deploy;
};

constexpr std::size_t kMostVersions = 20;

std::string number_text(const json& app, const char* field) {
  const auto found = app.find(field);
  return found == app.end() || !found->is_number() ? "0" : fmt::format("{:g}", found->get<double>());
}

std::string image_of(const json& app) {
  const auto container = app.value("container", json());
  const auto docker = container.is_object() ? container.value("docker", json()) : json();
  const auto image = docker.is_object() ? text_in(docker, "image") : "";
  return image.empty() ? "-" : image;
}

std::string ports_of(const json& task) {
  std::vector<std::string> ports;
  for (const auto& port : task.value("ports", json::array())) ports.push_back(port.dump());
  return fmt::format("{}", fmt::join(ports, ","));
}

std::string deployment_text(const json& app) {
  const auto deployments = app.value("deployments", json::array());
  return deployments.empty() ? "" : "under way";
}

Result<int> list_apps(Context& context, const TableOptions& options) {
  const auto client = context.client();
  if (options.json) {
    DROVER_TRY(const auto apps, list_apps(client));
    print_json({{"apps", apps}});
    return 0;
  }
  DROVER_TRY(const auto queue, client.get("/v2/queue"));
  Table table({"APP", "UP", "HEALTH", "GPUS", "CPUS", "MEM MiB", "IMAGE", "DEPLOYMENT", "WAITS FOR"});
  const auto add = [&](const json& app) {
    if (!app.is_object()) return;
    const auto state = app_state(app, queue, wall_clock());
    table.add({state.id, state.up, state.health, number_text(app, "gpus"), number_text(app, "cpus"),
               number_text(app, "mem"), image_of(app), deployment_text(app), waiting_words(state)});
  };
  DROVER_CHECK_OK(client.get_items("/v2/apps", "apps", add));
  DROVER_TRY(const auto text, shown(table, options));
  print(text);
  return 0;
}

/// "alive" and the like, of all its checks; "-" without any.
std::string health_of_task(const json& task) {
  const auto results = task.value("healthCheckResults", json::array());
  if (!results.is_array() || results.empty()) return "-";
  const bool alive = std::ranges::all_of(
      results, [](const json& result) { return result.is_object() && result.value("alive", false); });
  return alive ? "healthy" : "unhealthy";
}

Result<int> show(Context& context, const AppOptions& options) {
  const auto client = context.client();
  DROVER_TRY(const auto app, get_app(client, options.app));
  if (options.deploy.json) {
    print_json(app);
    return 0;
  }
  DROVER_TRY(const auto queue, client.get("/v2/queue"));
  const auto state = app_state(app, queue, wall_clock());
  std::string text = fmt::format("{}, version {}\n", state.id, text_in(app, "version"));
  text += fmt::format("  {} up, each with gpus {}, cpus {}, mem {} MiB, image {}\n", state.up,
                      number_text(app, "gpus"), number_text(app, "cpus"), number_text(app, "mem"),
                      printable(image_of(app)));
  if (const auto command = text_in(app, "cmd"); !command.empty()) text += "  " + printable(command) + "\n";
  if (!state.waits.empty()) text += "  waits for: " + printable(waiting_words(state)) + "\n";
  for (const auto& deployment : app.value("deployments", json::array()))
    text += fmt::format("  deployment {} is under way\n", text_in(deployment, "id"));
  if (auto failure = last_failure(app)) {
    add_output(client, *failure);
    text += failure_text(*failure, wall_clock(), columns());
  }
  Table table({"TASK", "STATE", "HEALTH", "PORTS", "VERSION", "SINCE"});
  const auto tasks = app.value("tasks", json::array());
  for (const auto& task : tasks)
    table.add({text_in(task, "id"), text_in(task, "state"), health_of_task(task), ports_of(task),
               text_in(task, "version"), text_in(task, "startedAt")});
  if (!tasks.empty()) text += shown(table);
  print(text);
  return 0;
}

/// Waits for what an answer started, and prints it.
Result<int> follow(const Client& client, const AppOptions& options, const json& answer) {
  if (options.deploy.json) print_json(answer);
  Watched watched{{}, {marathon::absolute_path(options.app)}};
  if (const auto id = deployment_of(answer); !id.empty()) watched.deployments.insert(id);
  return finish_deployments(client, watched, options.deploy);
}

Result<int> change(const Client& client, const AppOptions& options, const json& body) {
  DROVER_TRY(const auto target, app_target(options.app, "?" + force_parameter(options.deploy)));
  DROVER_TRY(const auto answer, client.put(target, body));
  return follow(client, options, answer);
}

Result<int> scale(Context& context, const AppOptions& options) {
  const auto client = context.client();
  DROVER_CHECK_OK(get_app(client, options.app));  // a PUT would define it
  return change(client, options, {{"instances", options.instances}});
}

Result<int> restart(Context& context, const AppOptions& options) {
  const auto client = context.client();
  DROVER_CHECK_OK(get_app(client, options.app));
  DROVER_TRY(const auto target, app_target(options.app, "/restart?" + force_parameter(options.deploy)));
  DROVER_TRY(const auto answer, client.post(target, json()));
  return follow(client, options, answer);
}

Result<int> remove(Context& context, const AppOptions& options) {
  const auto client = context.client();
  DROVER_CHECK_OK(get_app(client, options.app));
  DROVER_TRY(const auto target, app_target(options.app, "?" + force_parameter(options.deploy)));
  DROVER_TRY(const auto answer, client.erase(target));
  return follow(client, options, answer);
}

/// The newest first.
Result<std::vector<std::string>> versions_of(const Client& client, const std::string& app) {
  DROVER_TRY(const auto target, app_target(app, "/versions"));
  DROVER_TRY(const auto answer, client.get(target));
  std::vector<std::string> versions;
  for (const auto& version : answer.value("versions", json::array()))
    if (version.is_string()) versions.push_back(version);
  std::ranges::sort(versions, std::ranges::greater());
  return versions;
}

Result<json> definition_of(const Client& client, const std::string& app, const std::string& version) {
  DROVER_TRY(const auto target, app_target(app, "/versions/" + version));
  return client.get(target);
}

/// The newest earlier one that says something else than the app does now: a restart makes a version too.
Result<std::string> version_before(const Client& client, const AppOptions& options, const json& app,
                                   const std::vector<std::string>& versions) {
  const auto now = text_in(app, "version");
  bool any = false;
  for (const auto& version : versions) {
    if (version >= now) continue;
    DROVER_TRY(const auto definition, definition_of(client, options.app, version));
    if (!differences(definition, app).empty()) return version;
    any = true;
  }
  const auto hint = list_in(app, "deployments").empty()
                        ? fmt::format("'drover app history {}' lists its versions", options.app)
                        : fmt::format("'drover app cancel {}' takes its deployment back", options.app);
  return fail(ErrorKind::kConflict,
              fmt::format("App '{}' has no {}", options.app,
                          any ? "earlier version that says something else" : "version before this one"),
              hint);
}

/// The one that was asked for, or the one before.
Result<std::string> version_to_go_back_to(const Client& client, const AppOptions& options, const json& app) {
  DROVER_TRY(const auto versions, versions_of(client, options.app));
  if (options.version.empty()) return version_before(client, options, app, versions);
  if (std::ranges::find(versions, options.version) != versions.end()) return options.version;
  const Error missing{ErrorKind::kNotFound,
                      fmt::format("App '{}' has no version '{}'", options.app, options.version),
                      fmt::format("'drover app history {}' lists them", options.app), ""};
  return Failure(with_nearest(missing, options.version, {versions.begin(), versions.end()}));
}

Result<int> rollback(Context& context, const AppOptions& options) {
  const auto client = context.client();
  DROVER_TRY(const auto app, get_app(client, options.app));
  DROVER_TRY(const auto version, version_to_go_back_to(client, options, app));
  if (!options.deploy.json) report(fmt::format("going back to version {}", version));
  return change(client, options, {{"version", version}});
}

Result<int> suspend(Context& context, const AppOptions& options) {
  const auto client = context.client();
  DROVER_CHECK_OK(get_app(client, options.app));
  return change(client, options, {{"instances", 0}});
}

/// As many as it had last before it had none.
Result<int> resume(Context& context, const AppOptions& options) {
  const auto client = context.client();
  DROVER_TRY(const auto app, get_app(client, options.app));
  if (const auto has = count_in(app, "instances"); has > 0)
    return fail(ErrorKind::kConflict,
                fmt::format("App '{}' is not suspended: it has {} instances", options.app, has),
                fmt::format("'drover app scale {} N' sets how many", options.app));
  DROVER_TRY(const auto versions, versions_of(client, options.app));
  for (const auto& version : versions) {
    DROVER_TRY(const auto definition, definition_of(client, options.app, version));
    if (const auto had = count_in(definition, "instances"); had > 0)
      return change(client, options, {{"instances", had}});
  }
  return fail(ErrorKind::kConflict, fmt::format("App '{}' never had an instance", options.app),
              fmt::format("say how many: drover app scale {} N", options.app));
}

Result<int> history(Context& context, const AppOptions& options) {
  const auto client = context.client();
  DROVER_TRY(const auto app, get_app(client, options.app));
  DROVER_TRY(auto versions, versions_of(client, options.app));
  const bool more = versions.size() > kMostVersions;
  if (more) versions.resize(kMostVersions + 1);  // one to compare the last with
  std::vector<json> definitions;
  for (const auto& version : versions) {
    DROVER_TRY(auto definition, definition_of(client, options.app, version));
    definitions.push_back(std::move(definition));
  }
  json all = json::array();
  Table table({"VERSION", "NOW", "CHANGED"});
  for (std::size_t i = 0; i < versions.size() - (more ? 1 : 0); ++i) {
    auto words = i + 1 < versions.size() ? differences(definitions[i + 1], definitions[i])
                                         : std::vector<std::string>{"the first"};
    if (words.empty()) words.push_back("restarted, or brought again as it was");
    const bool current = versions[i] == text_in(app, "version");
    const bool same = differences(definitions[i], app).empty();
    table.add({versions[i], current ? "*" : same ? "same" : "", fmt::format("{}", fmt::join(words, ", "))});
    all.push_back({{"version", versions[i]},
                   {"current", current},
                   {"same_as_current", same},
                   {"changes", std::move(words)}});
  }
  if (options.deploy.json)
    print_json({{"versions", std::move(all)}});
  else
    print(shown(table));
  return 0;
}

using Body = Result<int> (*)(Context&, const AppOptions&);

CLI::App* add(CLI::App* group, Context& context, std::shared_ptr<AppOptions> options, const char* name,
              const char* help, Body body) {
  auto* command = group->add_subcommand(name, help);
  command->add_option("app", options->app, "Its id: /shop/web; the slash in front may be left out")
      ->required()
      ->type_name("APP");
  command->add_flag("--json", options->deploy.json, "Print JSON");
  on_call(command, context, options, body);
  return command;
}

/// One that starts a deployment.
CLI::App* add_change(CLI::App* group, Context& context, std::shared_ptr<AppOptions> options, const char* name,
                     const char* help, Body body) {
  auto* command = add(group, context, options, name, help, body);
  add_wait_flags(*command, options->deploy);
  command->add_flag("--force", options->deploy.force, "Override a deployment that is under way for it");
  return command;
}

}  // namespace

void add_apps(CLI::App& app, Context& context) {
  auto* group = app.add_subcommand("app", "Look at the apps, and change them");
  group->require_subcommand(1);
  auto listing = std::make_shared<TableOptions>();
  auto* listed = group->add_subcommand("ls", "List the apps: what is up, and what they wait for");
  add_list_flags(*listed, *listing);
  on_call(listed, context, listing, list_apps);
  const auto options = [] { return std::make_shared<AppOptions>(); };
  add(group, context, options(), "inspect", "Show an app and its tasks", show);
  const auto scaling = options();
  add_change(group, context, scaling, "scale", "Run so many instances of an app", scale)
      ->add_option("instances", scaling->instances, "How many")
      ->required()
      ->check(between(0, 10'000))
      ->type_name("N");
  add_change(group, context, options(), "restart", "Start every instance of an app anew", restart);
  const auto going_back = options();
  add_change(group, context, going_back, "rollback", "Go back to an earlier version of an app", rollback)
      ->add_option("--to", going_back->version, "The version; the last that was different, when not given")
      ->type_name("VERSION");
  add_change(group, context, options(), "suspend", "Run no instance of an app for now", suspend);
  add_change(group, context, options(), "resume", "Run as many of a suspended app as before", resume);
  add_change(group, context, options(), "rm", "End an app and forget it", remove);
  add(group, context, options(), "history", "List an app's versions, and what each changed", history);
  add_deployments(*group, context);
}

}  // namespace drover::cli
