// What is wrong with a definition, before anybody runs it. Needs no daemon.

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/commands/commands.h"
#include "cli/definitions/files.h"

namespace drover::cli {
namespace {

using nlohmann::json;

struct ValidateOptions {
  std::vector<std::string> files;
  bool strict = false;
  bool json = false;
};

json as_json(const Definitions& definitions) {
  json all = json::array();
  for (const auto& each : definitions.all)
    all.push_back({{"kind", kind_word(each.kind)}, {"name", each.name}, {"file", each.file}});
  const auto list = [](const std::vector<Finding>& findings) {
    json shown = json::array();
    for (const auto& finding : findings) shown.push_back(to_json(finding));
    return shown;
  };
  return {{"definitions", std::move(all)},
          {"mistakes", list(definitions.findings)},
          {"warnings", list(definitions.warnings)}};
}

std::string verdict(const Definition& definition) {
  const auto count = definition.warnings;
  if (count == 0) return "is right";
  return fmt::format("can be applied, with {} warning{}", count, count == 1 ? "" : "s");
}

Result<int> validate(Context&, const ValidateOptions& options) {
  DROVER_TRY(const auto definitions, read_definition_files(options.files, options.strict));
  if (options.json) {
    print_json(as_json(definitions));
    return definitions.findings.empty() ? 0 : error_kind_info(ErrorKind::kInvalid).exit_status;
  }
  report_warnings(definitions.warnings);
  if (!definitions.findings.empty()) return report_findings(definitions.findings);
  for (const auto& each : definitions.all)
    print(fmt::format("{}: {} '{}' {}\n", each.file, kind_word(each.kind), each.name, verdict(each)));
  return 0;
}

}  // namespace

void add_validate(CLI::App& app, Context& context) {
  auto options = std::make_shared<ValidateOptions>();
  auto* command = app.add_subcommand("validate",
                                     "Check the definitions of apps, groups, jobs, tasks, queues and quotas, "
                                     "and show every mistake where it stands");
  command->add_option("file", options->files, "YAML or JSON; '-' is standard input")
      ->required()
      ->type_name("FILE");
  command->add_flag("--strict", options->strict, "Take warnings for mistakes, as fields that nobody knows");
  command->add_flag("--json", options->json, "Print JSON");
  on_call(command, context, options, validate);
}

}  // namespace drover::cli
