// Deployments of apps that are under way: app deployments, app cancel.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

#include "base/units.h"
#include "cli/commands/commands.h"
#include "cli/services/api.h"
#include "cli/services/app_state.h"
#include "cli/services/deploy.h"
#include "cli/services/failure.h"
#include "cli/services/fields.h"
#include "marathon/path.h"

namespace drover::cli {
namespace {

using nlohmann::json;

struct CancelOptions {
  std::string what;
  DeployOptions deploy;
};

std::vector<std::string> apps_of(const json& deployment) {
  std::vector<std::string> apps;
  for (const auto& app : list_in(deployment, "affectedApps"))
    if (app.is_string()) apps.push_back(app.get<std::string>());
  return apps;
}

/// "scale" of "ScaleApplication".
std::string action_word(const std::string& action) {
  auto word = action.substr(0, action.find("Application"));
  std::ranges::transform(word, word.begin(), [](unsigned char c) { return std::tolower(c); });
  return word;
}

/// What an app waits for, and how an instance of it failed last.
std::string why_of(const json& app, const json& queue) {
  auto why = waiting_words(app_state(app, queue, wall_clock()));
  if (const auto failure = last_failure(app); failure && is_newest(app, failure->version))
    why += (why.empty() ? "" : "; ") + ("last failure: " + failure->how);
  return why;
}

/// What the apps of its present step wait for: {"app", "why"}.
Result<json> waits_of(const Client& client, const json& deployment, const json& queue) {
  json waits = json::array();
  for (const auto& action : list_in(deployment, "currentActions")) {
    const auto id = text_in(action, "app");
    DROVER_TRY(const auto target, app_target(id));
    const auto answer = client.get(target);
    if (!answer && answer.error().kind != ErrorKind::kNotFound) return Failure(answer.error());
    auto why = answer ? why_of(answer->value("app", json::object()), queue) : "its instances end";
    if (!why.empty()) waits.push_back({{"app", id}, {"why", std::move(why)}});
  }
  return waits;
}

Result<json> description_of(const Client& client, const json& deployment, const json& queue) {
  json actions = json::array();
  for (const auto& action : list_in(deployment, "currentActions"))
    actions.push_back({{"action", action_word(text_in(action, "action"))}, {"app", text_in(action, "app")}});
  DROVER_TRY(auto waits, waits_of(client, deployment, queue));
  json all = {{"id", text_in(deployment, "id")},
              {"apps", apps_of(deployment)},
              {"version", text_in(deployment, "version")},
              {"step", count_in(deployment, "currentStep")},
              {"steps", count_in(deployment, "totalSteps")},
              {"actions", std::move(actions)},
              {"age_seconds", 0},
              {"waits", std::move(waits)}};
  if (const auto begun = parse_time(text_in(deployment, "version"))) {
    const auto age = std::chrono::floor<std::chrono::seconds>(wall_clock() - *begun).count();
    all["age_seconds"] = std::max<std::int64_t>(age, 0);
  }
  return all;
}

/// "1 of 2: scale /web, scale /back".
std::string step_text(const json& deployment) {
  std::vector<std::string> actions;
  for (const auto& action : deployment.at("actions"))
    actions.push_back(text_in(action, "action") + " " + text_in(action, "app"));
  return fmt::format("{} of {}: {}", count_in(deployment, "step"), count_in(deployment, "steps"),
                     fmt::join(actions, ", "));
}

/// One app's reason; several with their apps in front.
std::string waits_text(const json& deployment) {
  const auto& waits = deployment.at("waits");
  std::vector<std::string> words;
  for (const auto& each : waits)
    words.push_back((waits.size() > 1 ? text_in(each, "app") + ": " : "") + text_in(each, "why"));
  return fmt::format("{}", fmt::join(words, "; "));
}

Result<int> print_deployments(Context& context, const TableOptions& options) {
  const auto client = context.client();
  DROVER_TRY(const auto deployments, list_deployments(client));
  DROVER_TRY(const auto queue, client.get("/v2/queue"));
  json all = json::array();
  Table table({"DEPLOYMENT", "APPS", "VERSION", "STEP", "AGE", "WAITS FOR"});
  for (const auto& deployment : deployments) {
    DROVER_TRY(auto shown, description_of(client, deployment, queue));
    table.add({text_in(shown, "id"), fmt::format("{}", fmt::join(apps_of(deployment), ", ")),
               text_in(shown, "version"), step_text(shown),
               format_duration(std::chrono::seconds(count_in(shown, "age_seconds"))), waits_text(shown)});
    all.push_back(std::move(shown));
  }
  if (options.json) {
    print_json({{"deployments", std::move(all)}});
    return 0;
  }
  DROVER_TRY(const auto text, cli::shown(table, options));
  print(text);
  return 0;
}

/// By its id, the beginning of its id, or an app that it changes.
Result<json> meant_deployment(const Client& client, const std::string& what) {
  DROVER_TRY(const auto deployments, list_deployments(client));
  const auto app = marathon::absolute_path(what);
  std::set<std::string> known;
  std::vector<json> found;
  for (const auto& deployment : deployments) {
    const auto id = text_in(deployment, "id");
    if (id == what) return deployment;
    const auto apps = apps_of(deployment);
    if (id.starts_with(what) || std::ranges::find(apps, app) != apps.end()) found.push_back(deployment);
    known.insert(id);
    known.insert(apps.begin(), apps.end());
  }
  if (found.size() == 1) return found.front();
  const auto hint = "'drover app deployments' lists those under way";
  if (!found.empty())
    return fail(ErrorKind::kConflict, fmt::format("'{}' may mean {} deployments", what, found.size()), hint);
  const Error missing{ErrorKind::kNotFound, fmt::format("No deployment is under way for '{}'", what), hint,
                      ""};
  return Failure(with_nearest(missing, what, known));
}

Result<int> cancel(Context& context, const CancelOptions& options) {
  const auto client = context.client();
  DROVER_TRY(const auto deployment, meant_deployment(client, options.what));
  const auto id = text_in(deployment, "id");
  const auto& deploy = options.deploy;
  DROVER_TRY(const auto answer,
             client.erase("/v2/deployments/" + percent_encode(id) + (deploy.force ? "?force=true" : "")));
  if (deploy.force) {
    if (deploy.json)
      print_json({{"cancelled", id}});
    else
      print(fmt::format("{}: given up where it stood; the apps keep what it has done\n", id));
    return 0;
  }
  if (deploy.json) print_json(answer);
  Watched watched{{}, apps_of(deployment)};
  if (const auto back = deployment_of(answer); !back.empty()) watched.deployments.insert(back);
  return finish_deployments(client, watched, deploy);
}

}  // namespace

void add_deployments(CLI::App& group, Context& context) {
  auto listing = std::make_shared<TableOptions>();
  auto* listed = group.add_subcommand("deployments", "List the deployments under way, and why they wait");
  add_list_flags(*listed, *listing);
  on_call(listed, context, listing, print_deployments);
  auto options = std::make_shared<CancelOptions>();
  auto* command = group.add_subcommand("cancel", "Take a deployment back: its apps are as before it");
  command->add_option("deployment", options->what, "Its id, the beginning of its id, or an app of its")
      ->required()
      ->type_name("DEPLOYMENT");
  command->add_flag("--force", options->deploy.force, "Give it up where it stands, and take nothing back");
  command->add_flag("--json", options->deploy.json, "Print JSON");
  add_wait_flags(*command, options->deploy);
  on_call(command, context, options, cancel);
}

}  // namespace drover::cli
