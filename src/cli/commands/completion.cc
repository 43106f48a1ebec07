#include "cli/completion.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <string_view>

#include "cli/commands/commands.h"
#include "cli/services/api.h"

namespace drover::cli {
namespace {

struct CompletionOptions {
  std::string shell;
};

Result<int> completion(Context& context, const CompletionOptions& options) {
  DROVER_TRY(const auto script, completion_script(*context.app, options.shell));
  print(script);
  return 0;
}

struct IdsOptions {
  std::string what;
};

/// Shells expand what completions offer, and take what begins with '-' for an option: nobody's name may be
/// such.
bool is_plain(std::string_view id) {
  return !id.empty() && id.front() != '-' && std::ranges::all_of(id, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '/' || c == '.' || c == '-' || c == '_';
  });
}

/// For completion scripts: what there is, a line each.
Result<int> list_ids(Context& context, const IdsOptions& options) {
  const auto client = context.client();
  std::string text;
  const auto add = [&](const std::string& id) { text += is_plain(id) ? id + "\n" : ""; };
  if (options.what == "APP") {
    DROVER_TRY(const auto apps, list_apps(client));
    for (const auto& app : apps) add(app.value("id", ""));
  } else if (options.what == "JOB") {
    DROVER_TRY(const auto jobs, list_jobs(client));
    for (const auto& job : jobs) add(job.value("name", ""));
  } else {
    DROVER_TRY(const auto listing, client.get("/v1/tasks?summary=true"));
    for (const auto& record : listing.value("tasks", nlohmann::json::array()))
      add(record.value(nlohmann::json::json_pointer("/task/id"), ""));
  }
  print(text);
  return 0;
}

}  // namespace

void add_completion(CLI::App& app, Context& context) {
  auto options = std::make_shared<CompletionOptions>();
  auto* command = app.add_subcommand("completion", "Print a completion script for your shell");
  command->add_option("shell", options->shell, "bash, zsh or fish")->required()->type_name("SHELL");
  on_call(command, context, options, completion);
  auto listing = std::make_shared<IdsOptions>();
  auto* ids = app.add_subcommand("ids", "List ids, for completion scripts")->group("");
  ids->add_option("what", listing->what, "TASK, APP or JOB")
      ->required()
      ->check(CLI::IsMember({"TASK", "APP", "JOB"}));
  on_call(ids, context, listing, list_ids);
}

}  // namespace drover::cli
