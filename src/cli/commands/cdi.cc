#include <fmt/format.h>

#include <iterator>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "cdi/decode.h"
#include "cdi/registry.h"
#include "cdi/write.h"
#include "cli/commands/commands.h"
#include "cli/printable.h"
#include "cli/table.h"
#include "cli/usage.h"
#include "cli/words.h"

namespace drover::cli {
namespace {

using nlohmann::json;

Result<int> show_cdi(Context& context, const ShowOptions&) {
  DROVER_TRY(const auto specification, context.client().get("/v1/cdi"));
  print_json(specification);
  return 0;
}

struct GenerateOptions {
  std::string output;
  std::string format;
  std::string driver_root;
};

/// The daemon knows its GPUs, also simulated ones. Where none runs, this program looks itself.
Result<cdi::Specification> generated(const Context& context, const GenerateOptions& options) {
  const auto local = [&] { return context.hooks->cdi_specification(options.driver_root); };
  if (!options.driver_root.empty()) return local();
  const auto answer = context.client().get("/v1/cdi");
  if (answer) return cdi::decode_specification(answer->dump(), "The daemon's CDI specification");
  if (answer.error().kind == ErrorKind::kUnavailable && context.endpoint.url.empty()) return local();
  return Failure(answer.error());
}

Result<int> generate_cdi(Context& context, const GenerateOptions& options) {
  DROVER_TRY(const auto specification, generated(context, options));
  const auto format = cdi::format_of_file(options.format.empty() ? options.output : "." + options.format);
  const auto text = cdi::write_specification(specification, format);
  if (options.output.empty())
    print(text);
  else
    DROVER_CHECK_OK(write_file(options.output, text));
  return 0;
}

struct ListOptions {
  bool json = false;
  std::vector<std::string> folders;
};

Result<int> list_cdi(Context&, const ListOptions& options) {
  const auto folders = options.folders.empty()
                           ? std::vector<std::string>(std::begin(cdi::kFolders), std::end(cdi::kFolders))
                           : options.folders;
  const auto registry = cdi::Registry::read(folders);
  for (const auto& problem : registry.problems()) report(to_string(problem));
  if (options.json) {
    auto devices = json::array();
    for (const auto& [name, entry] : registry.devices())
      devices.push_back({{"name", to_string(name)}, {"file", entry.file}, {"conflicts", entry.conflicts}});
    auto problems = json::array();
    for (const auto& problem : registry.problems()) problems.push_back(to_string(problem));
    print_json({{"devices", std::move(devices)}, {"problems", std::move(problems)}});
    return 0;
  }
  Table table({"DEVICE", "FILE", "CONFLICTS"});
  for (const auto& [name, entry] : registry.devices())
    table.add(
        {to_string(name), printable(entry.file),
         entry.conflicts.empty() ? "-" : printable(fmt::format("{}", fmt::join(entry.conflicts, ", ")))});
  print(shown(table));
  if (registry.devices().empty())
    print(fmt::format("No CDI device is installed in {}\n", fmt::join(folders, " or ")));
  return 0;
}

void add_generate(CLI::App& group, Context& context) {
  auto options = std::make_shared<GenerateOptions>();
  auto* command = group.add_subcommand("generate", "Write the specification of this machine's GPUs");
  command->add_option("--output,-o", options->output, "File to replace; printed when not given")
      ->type_name("FILE");
  command->add_option("--format", options->format, "json or yaml; else the file's name tells")
      ->check(one_of({"json", "yaml"}))
      ->type_name("json|yaml");
  command
      ->add_option(
          "--driver-root", options->driver_root,
          "Look at this machine without asking the daemon, and for the driver's files in this folder")
      ->type_name("DIR");
  on_call(command, context, options, generate_cdi);
}

void add_list(CLI::App& group, Context& context) {
  auto options = std::make_shared<ListOptions>();
  auto* command = group.add_subcommand("ls", "List all CDI devices that are installed on this machine");
  command->add_flag("--json", options->json, "Print JSON");
  command
      ->add_option("--folder", options->folders,
                   "Look here instead of in /etc/cdi and /var/run/cdi; may be repeated")
      ->type_name("DIR");
  on_call(command, context, options, list_cdi);
}

}  // namespace

void add_cdi(CLI::App& app, Context& context) {
  auto* group = app.add_subcommand(
      "cdi", "Print the CDI specification of the GPUs, for other container engines; or generate, ls");
  auto options = std::make_shared<ShowOptions>();
  group->add_flag("--json", options->json, "It is JSON in any case");
  group->callback([group, &context, options] {
    if (group->get_subcommands().empty()) finish(context, show_cdi(context, *options));
  });
  add_generate(*group, context);
  add_list(*group, context);
}

}  // namespace drover::cli
