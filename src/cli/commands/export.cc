// All definitions that the daemon keeps, as a file that 'drover apply' takes.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/yaml_writer.h"
#include "cli/commands/commands.h"
#include "cli/services/fields.h"
#include "cli/words.h"

namespace drover::cli {
namespace {

using nlohmann::json;

/// "2 queues, 1 app"
std::string counts_of(const std::vector<json>& definitions) {
  std::string text;
  for (const auto* kind : {"queue", "quota", "app", "group", "job"}) {
    const auto count =
        std::ranges::count_if(definitions, [&](const json& each) { return text_in(each, "kind") == kind; });
    if (count > 0) text += (text.empty() ? "" : ", ") + counted(static_cast<double>(count), kind);
  }
  return text.empty() ? "nothing" : text;
}

/// What no definition makes again; "" for nothing.
std::string left_out(const json& answer) {
  const auto of = answer.value("left_out", json::object());
  const int tasks = count_in(of, "tasks"), frameworks = count_in(of, "frameworks");
  std::string text;
  if (tasks > 0) text = counted(tasks, "task") + " of people";
  if (frameworks > 0) text += (text.empty() ? "" : " and ") + counted(frameworks, "framework");
  return text;
}

Result<int> export_all(Context& context, const ShowOptions& options) {
  DROVER_TRY(const auto answer, context.client().get("/v1/export"));
  const auto definitions = list_in(answer, "definitions").get<std::vector<json>>();
  const auto missing = left_out(answer);
  if (options.json) {
    print_json(definitions);
    if (!missing.empty()) report("not in it: " + missing);
    return 0;
  }
  print(fmt::format("# {}. 'drover apply FILE' brings it to a daemon.\n", counts_of(definitions)));
  if (!missing.empty()) print(fmt::format("# Not in it: {}.\n", missing));
  print(to_yaml(definitions));
  return 0;
}

}  // namespace

void add_export(CLI::App& app, Context& context) {
  auto options = std::make_shared<ShowOptions>();
  auto* command = app.add_subcommand(
      "export",
      "Print all apps, jobs, queues and quotas that the daemon keeps, as a file for 'drover apply'");
  command->add_flag("--json", options->json, "Print a list in JSON, which 'drover apply' takes too");
  on_call(command, context, options, export_all);
}

}  // namespace drover::cli
