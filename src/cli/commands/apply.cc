// Brings files with queues, quotas, apps, groups, jobs and tasks to the daemon: says what will change,
// changes it, and waits.

#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/json_text.h"
#include "base/units.h"
#include "cli/commands/commands.h"
#include "cli/definitions/files.h"
#include "cli/printable.h"
#include "cli/services/api.h"
#include "cli/services/changes.h"
#include "cli/services/deploy.h"
#include "cli/services/rules.h"
#include "cli/words.h"

namespace drover::cli {
namespace {

using nlohmann::json;

struct ApplyOptions {
  std::vector<std::string> files;
  DeployOptions deploy;
  bool dry_run = false;
  bool strict = false;
};

struct Plan {
  std::vector<Change> changes;  ///< for people, in the order of the files
  std::vector<json> queues;     ///< all or none
  std::vector<json> quotas;     ///< the same
  json apps = json::array();    ///< to be sent in one deployment
  std::vector<const Definition*> groups;
  std::vector<const Definition*> jobs;
  std::vector<const Definition*> tasks;
};

/// One that changes something.
struct ChangeRequest {
  const char* method;
  std::string target;
  json body;
  const Definition* task = nullptr;  ///< that it submits; null for all else
};

/// What the daemon has made of them.
struct Sent {
  std::set<std::string> deployments;
  json tasks = json::array();
};

/// Null when there is none.
Result<json> existing(const Client& client, const std::string& target) {
  auto answer = client.get(target);
  if (!answer && answer.error().kind == ErrorKind::kNotFound) return json();
  return answer;
}

/// Asked for once, when the first is to be compared.
struct KnownRules {
  std::optional<std::vector<json>> queues;
  std::optional<std::vector<json>> quotas;
};

Status plan_rule(const Client& client, const Definition& definition, KnownRules& known, Plan& plan) {
  const bool is_queue = definition.kind == DefinitionKind::kQueue;
  auto& existing = is_queue ? known.queues : known.quotas;
  if (!existing) {
    DROVER_TRY(existing, list_rules(client, is_queue ? "queues" : "quotas"));
  }
  auto change = change_of_rule(definition, *existing);
  if (change.kind != ChangeKind::kUnchanged)
    (is_queue ? plan.queues : plan.quotas).push_back(definition.value);
  plan.changes.push_back(std::move(change));
  return {};
}

Status plan_app(const Client& client, const Definition& definition, Plan& plan) {
  DROVER_TRY(const auto target, app_target(definition.name));
  DROVER_TRY(const auto answer, existing(client, target));
  auto change = change_of_app(definition.value, answer.is_object() ? answer.value("app", json()) : json());
  if (change.kind != ChangeKind::kUnchanged) plan.apps.push_back(definition.value);
  plan.changes.push_back(std::move(change));
  return {};
}

Status plan_group(const Client& client, const Definition& definition, Plan& plan) {
  DROVER_TRY(const auto answer, existing(client, "/v2/groups" + definition.name));
  auto changes = changes_of_group(definition, answer);
  if (changes.empty() && answer.is_null())
    changes.push_back({definition.name, DefinitionKind::kGroup, ChangeKind::kNew, {"without apps"}, {}});
  // What it depends on is of the group itself, so that an unchanged look does not mean an unchanged group.
  const auto before = answer.is_object() ? answer.value("dependencies", json::array()) : json::array();
  bool changed = definition.value.value("dependencies", json::array()) != before;
  for (auto& change : changes) {
    changed = changed || change.kind != ChangeKind::kUnchanged;
    plan.changes.push_back(std::move(change));
  }
  if (changed || definition.value.contains("scaleBy")) plan.groups.push_back(&definition);
  return {};
}

Status plan_job(const Client& client, const Definition& definition, Plan& plan) {
  DROVER_TRY(const auto answer, existing(client, job_target(definition.name)));
  const auto now = wall_clock();
  auto change = change_of_job(definition, answer, now);
  if (change.kind != ChangeKind::kUnchanged) plan.jobs.push_back(&definition);
  plan.changes.push_back(std::move(change));
  return {};
}

Result<Plan> make_plan(const Client& client, const std::vector<Definition>& definitions) {
  Plan plan;
  KnownRules rules;
  for (const auto& each : definitions) {
    switch (each.kind) {
      case DefinitionKind::kQueue:
      case DefinitionKind::kQuota:
        DROVER_CHECK_OK(plan_rule(client, each, rules, plan));
        break;
      case DefinitionKind::kApp:
        DROVER_CHECK_OK(plan_app(client, each, plan));
        break;
      case DefinitionKind::kGroup:
        DROVER_CHECK_OK(plan_group(client, each, plan));
        break;
      case DefinitionKind::kTask:
      case DefinitionKind::kGang:
        plan.changes.push_back(change_of_task(each));
        plan.tasks.push_back(&each);
        break;
      default:
        DROVER_CHECK_OK(plan_job(client, each, plan));
    }
  }
  return plan;
}

/// All that the plan takes, in the order in which it is sent: queues before what is put into them.
std::vector<ChangeRequest> requests_of(const Plan& plan, const std::string& force) {
  std::vector<ChangeRequest> requests;
  if (!plan.queues.empty()) requests.push_back({"PUT", "/v1/queues", {{"queues", plan.queues}}});
  if (!plan.quotas.empty()) requests.push_back({"PUT", "/v1/quotas", {{"quotas", plan.quotas}}});
  if (!plan.apps.empty()) requests.push_back({"PUT", "/v2/apps?partialUpdate=false&" + force, plan.apps});
  for (const auto* group : plan.groups) {
    auto body = group->value;
    body["id"] = group->name;
    requests.push_back({"PUT", "/v2/groups" + group->name + "?" + force, std::move(body)});
  }
  for (const auto* job : plan.jobs) {
    const bool dependent = job->kind == DefinitionKind::kDependentJob;
    requests.push_back(
        {"POST", dependent ? "/v1/scheduler/dependency" : "/v1/scheduler/iso8601", job->value});
  }
  for (const auto* task : plan.tasks) requests.push_back({"POST", "/v1/tasks", task->value, task});
  return requests;
}

Result<Sent> send(const Client& client, const std::vector<ChangeRequest>& requests) {
  Sent sent;
  for (const auto& [method, target, body, task] : requests) {
    DROVER_TRY(const auto answer,
               method == std::string_view("PUT") ? client.put(target, body) : client.post(target, body));
    sent.deployments.insert(deployment_of(answer));
    if (task != nullptr)
      sent.tasks.push_back(
          {{"kind", kind_word(task->kind)}, {"name", task->name}, {"id", submitted_id(answer)}});
  }
  sent.deployments.erase("");
  return sent;
}

/// Asks the daemon what it would make of them: the first refusal is what sending them would come to.
Status rehearse(const Client& client, const std::vector<ChangeRequest>& requests) {
  json list = json::array();
  for (const auto& [method, target, body, task] : requests)
    list.push_back({{"method", method}, {"target", target}, {"body", body}});
  if (list.empty()) return {};
  DROVER_TRY(const auto answer, client.post("/v1/dry-run", json{{"requests", std::move(list)}}));
  for (const auto& each : answer.at("answers"))
    if (const auto status = each.at("status").get<unsigned>(); status >= 400)
      return Failure(read_refusal(status, to_text(each.at("body"))));
  return {};
}

json as_json(const Plan& plan, const Sent& sent) {
  json changes = json::array();
  for (const auto& change : plan.changes)
    changes.push_back({{"kind", kind_word(change.what)},
                       {"name", change.name},
                       {"change", change_word(change.kind)},
                       {"details", change.words}});
  return {{"changes", std::move(changes)}, {"deployments", sent.deployments}, {"tasks", sent.tasks}};
}

/// What is still not as the files say although the deployments have ended.
Result<int> judge(const Client& client, const std::vector<Definition>& definitions) {
  auto deployed = definitions;
  std::erase_if(deployed, [](const Definition& each) {
    return each.kind != DefinitionKind::kApp && each.kind != DefinitionKind::kGroup;
  });
  DROVER_TRY(const auto plan, make_plan(client, deployed));
  int status = 0;
  for (const auto& change : plan.changes) {
    if (change.kind == ChangeKind::kUnchanged) continue;
    report(change.name +
           ": it is not as the file says: its deployment was taken back, or it was changed again meanwhile");
    status = 1;
  }
  return status;
}

Result<int> apply(Context& context, const ApplyOptions& options) {
  DROVER_TRY(const auto definitions, read_definition_files(options.files, options.strict));
  report_warnings(definitions.warnings);
  if (!definitions.findings.empty()) return report_findings(definitions.findings);
  const auto client = context.client();
  DROVER_TRY(const auto plan, make_plan(client, definitions.all));
  if (!options.deploy.json)
    for (const auto& change : plan.changes) print(sentence(change) + "\n");
  const auto requests = requests_of(plan, force_parameter(options.deploy));
  // What is submitted cannot be sent again when the rest was refused: it would run twice.
  const bool all_or_nothing = !plan.tasks.empty() && requests.size() > 1;
  if (options.dry_run || all_or_nothing) DROVER_CHECK_OK(rehearse(client, requests));
  if (options.dry_run) {
    if (options.deploy.json) print_json(as_json(plan, {}));
    return 0;
  }
  DROVER_TRY(const auto sent, send(client, requests));
  report_doubts(context, client, plan.queues, plan.quotas);
  Watched watched{sent.deployments, {}};
  for (const auto& change : plan.changes)
    if (change.what == DefinitionKind::kApp && change.kind != ChangeKind::kUnchanged)
      watched.apps.push_back(change.name);
  if (options.deploy.json) print_json(as_json(plan, sent));
  if (!options.deploy.json)
    for (const auto& task : sent.tasks)
      print(fmt::format("{}: submitted as {}\n", printable(task.at("name").get<std::string>()),
                        task.at("id").get<std::string>()));
  DROVER_TRY(const int status, finish_deployments(client, watched, options.deploy));
  if (status != 0 || options.deploy.detach) return status;
  return judge(client, definitions.all);
}

}  // namespace

void add_apply(CLI::App& app, Context& context) {
  auto options = std::make_shared<ApplyOptions>();
  auto* command = app.add_subcommand(
      "apply",
      "Make the daemon run the apps, groups, jobs and tasks that files define, by their queues and quotas");
  command->add_option("file", options->files, "YAML or JSON; '-' is standard input")
      ->required()
      ->type_name("FILE");
  add_wait_flags(*command, options->deploy);
  command->add_flag("--force", options->deploy.force,
                    "Override deployments that are under way for the same apps");
  command->add_flag("--dry-run", options->dry_run,
                    "Only say what would change, and whether the daemon would take it");
  command->add_flag("--strict", options->strict, "Take warnings for mistakes, as fields that nobody knows");
  command->add_flag("--json", options->deploy.json, "Print JSON");
  on_call(command, context, options, apply);
}

}  // namespace drover::cli
