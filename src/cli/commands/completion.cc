#include "cli/completion.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>

#include "cli/commands/commands.h"
#include "cli/services/api.h"
#include "cli/services/fields.h"
#include "cli/usage.h"
#include "gpu/simulation.h"

namespace drover::cli {
namespace {

using nlohmann::json;

struct CompletionOptions {
  std::string shell;
};

Result<int> completion(Context&, const CompletionOptions& options) {
  DROVER_TRY(const auto script, completion_script(options.shell));
  print(script);
  return 0;
}

/// Shells put what completions offer into command lines as it is, and take what begins with '-' for an
/// option: nobody's name may be such.
bool is_plain(std::string_view id) {
  return !id.empty() && id.front() != '-' && std::ranges::all_of(id, [](unsigned char c) {
    return std::isalnum(c) != 0 ||
           std::string_view("/.-_:@+").find(static_cast<char>(c)) != std::string_view::npos;
  });
}

std::string text_at(const json& value, const char* pointer) {
  const auto found = value.value(json::json_pointer(pointer), json());
  return found.is_string() ? found.get<std::string>() : "";
}

/// Of all objects of a listing, the texts that stand there.
Result<std::vector<std::string>> texts_of(const Client& client, const char* target, const char* list,
                                          std::initializer_list<const char*> pointers) {
  DROVER_TRY(const auto listing, client.get(target));
  std::vector<std::string> texts;
  for (const auto& each : listing.value(list, json::array()))
    for (const auto* pointer : pointers) texts.push_back(text_at(each, pointer));
  return texts;
}

/// Ids, and then names.
Result<std::vector<std::string>> tasks_of(const Client& client, const std::string& kind) {
  DROVER_TRY(const auto listing,
             client.get(kind == "RUNNING" ? "/v1/tasks?active=true&summary=true" : "/v1/tasks?summary=true"));
  std::vector<std::string> ids;
  std::set<std::string> names;
  for (const auto& record : listing.value("tasks", json::array())) {
    const auto state = record.value("state", "");
    const bool ended = state == "finished" || state == "failed" || state == "killed" || state == "lost";
    if (kind == "ENDED" && !ended) continue;
    ids.push_back(text_at(record, "/task/id"));
    names.insert(text_at(record, "/task/name"));
  }
  ids.insert(ids.end(), names.begin(), names.end());
  return ids;
}

/// Ids, and then the apps that they change.
Result<std::vector<std::string>> deployments_and_apps(const Client& client) {
  DROVER_TRY(const auto deployments, list_deployments(client));
  std::vector<std::string> ids;
  std::set<std::string> apps;
  for (const auto& each : deployments) {
    ids.push_back(text_at(each, "/id"));
    for (const auto& app : list_in(each, "affectedApps"))
      if (app.is_string()) apps.insert(app.get<std::string>());
  }
  ids.insert(ids.end(), apps.begin(), apps.end());
  return ids;
}

Result<std::vector<std::string>> names_of_kind(const Client& client, const std::string& kind) {
  if (kind == "QUEUE") return texts_of(client, "/v1/queues", "queues", {"/queue"});
  if (kind == "IMAGE") return texts_of(client, "/v1/images", "images", {"/name"});
  if (kind == "MODEL") return texts_of(client, "/v1/gpus", "gpus", {"/model"});
  if (kind == "GPU") return texts_of(client, "/v1/gpus", "gpus", {"/uuid"});
  if (kind == "DEPLOYMENT") return deployments_and_apps(client);
  if (kind == "PROFILE") {
    DROVER_TRY(const auto places, gpu::simulator_places());
    const auto known = gpu::known_profiles(places);
    return std::vector(known.begin(), known.end());
  }
  if (kind != "APP" && kind != "JOB") return tasks_of(client, kind);
  std::vector<std::string> names;
  DROVER_TRY(const auto all, kind == "APP" ? list_apps(client) : list_jobs(client));
  for (const auto& each : all) names.push_back(text_at(each, kind == "APP" ? "/id" : "/name"));
  return names;
}

/// The part of a model that is one word, and tells it from others: "A100-SXM4-40GB" of "NVIDIA
/// A100-SXM4-40GB".
std::string model_word(const std::string& model) {
  return model.substr(model.rfind(' ') + 1);
}

struct CompleteOptions {
  std::string shell;
};

/// The daemon that the line names.
Endpoint endpoint_of(Endpoint endpoint, const std::map<std::string, std::string>& values) {
  for (const auto& [flag, field] :
       {std::pair("--socket", &endpoint.socket), std::pair("--host", &endpoint.url),
        std::pair("--token", &endpoint.token), std::pair("--ca-file", &endpoint.ca_file)})
    if (const auto found = values.find(flag); found != values.end()) *field = found->second;
  return endpoint;
}

/// For completion scripts: what could stand at the end of the words behind "--", a line each.
Result<int> complete(Context& context, const CompleteOptions& options) {
  const auto found = offers(*context.app, context.command);
  std::string text;
  for (const auto& [word, meaning] : found.words) text += offer_line(options.shell, word, meaning);
  if (!found.kind.empty()) {
    const Client client(endpoint_of(context.endpoint, found.values));
    const auto names = names_of_kind(client, found.kind);
    const auto current = context.command.empty() ? "" : context.command.back();
    std::set<std::string> told;
    for (const auto& name : names ? *names : std::vector<std::string>()) {
      const auto word = found.prefix + (found.kind == "MODEL" ? model_word(name) : name);
      if (is_plain(word.substr(found.prefix.size())) && word.starts_with(current) && told.insert(word).second)
        text += offer_line(options.shell, word, "");
    }
  }
  print(text);
  return 0;
}

struct IdsOptions {
  std::string what;
};

/// For scripts of earlier versions: what there is, a line each.
Result<int> list_ids(Context& context, const IdsOptions& options) {
  const auto client = context.client();
  std::string text;
  const auto add = [&](const std::string& id) { text += is_plain(id) ? id + "\n" : ""; };
  if (options.what == "TASK") {
    DROVER_TRY(const auto ids, texts_of(client, "/v1/tasks?summary=true", "tasks", {"/task/id"}));
    for (const auto& id : ids) add(id);
  } else {
    DROVER_TRY(const auto names, names_of_kind(client, options.what));
    for (const auto& name : names) add(name);
  }
  print(text);
  return 0;
}

}  // namespace

void add_completion(CLI::App& app, Context& context) {
  auto options = std::make_shared<CompletionOptions>();
  auto* command = app.add_subcommand("completion", "Print a completion script for your shell");
  command->add_option("shell", options->shell, "Which shell")->required()->type_name("bash|zsh|fish");
  on_call(command, context, options, completion);
  auto completing = std::make_shared<CompleteOptions>();
  auto* asked = app.add_subcommand("complete", "Say what could come next, for completion scripts")->group("");
  asked->add_option("shell", completing->shell, "Which shell")->required()->type_name("bash|zsh|fish");
  on_call(asked, context, completing, complete);
  auto listing = std::make_shared<IdsOptions>();
  auto* ids = app.add_subcommand("ids", "List ids, for completion scripts")->group("");
  ids->add_option("what", listing->what, "TASK, APP or JOB")
      ->required()
      ->check(one_of({"TASK", "APP", "JOB"}))
      ->type_name("TASK|APP|JOB");
  on_call(ids, context, listing, list_ids);
}

}  // namespace drover::cli
