#include "cli/cli.h"

#include <fmt/format.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/units.h"
#include "cli/commands/commands.h"
#include "cli/context.h"
#include "cli/usage.h"

namespace drover::cli {
namespace {

constexpr std::chrono::hours kMostPatience{24};

std::string environment(const char* name, const char* fallback = "") {
  const char* value = std::getenv(name);
  return value == nullptr || *value == '\0' ? fallback : value;
}

void add_endpoint_options(CLI::App& app, Endpoint& endpoint) {
  endpoint = {environment("DROVER_SOCKET", kDefaultSocket), environment("DROVER_HOST"),
              environment("DROVER_TOKEN"), environment("DROVER_CA_FILE")};
  const auto set_patience = [&endpoint](const std::string& text) {
    const auto patience = parse_duration(text);
    if (!patience) throw CLI::ValidationError("--patience", patience.error().message);
    endpoint.patience = std::min<std::chrono::milliseconds>(*patience, kMostPatience);
  };
  app.add_option("--socket", endpoint.socket, "Socket of the daemon (DROVER_SOCKET)")->type_name("PATH");
  app.add_option("--host", endpoint.url,
                 "Use a daemon over TCP: http://HOST:PORT or https://HOST:PORT (DROVER_HOST)")
      ->type_name("URL");
  app.add_option("--token", endpoint.token, "Secret for --host (DROVER_TOKEN)")->type_name("TOKEN");
  app.add_option_function<std::string>("--patience", set_patience,
                                       "How long to wait for a daemon that does not answer (DROVER_PATIENCE)")
      ->envname("DROVER_PATIENCE")
      ->type_name("TIME")
      ->default_str(format_duration(endpoint.patience));
  app.add_option("--ca-file", endpoint.ca_file,
                 "Authorities that are trusted with https, instead of the machine's (DROVER_CA_FILE)")
      ->type_name("FILE");
}

void add_commands(CLI::App& app, Context& context) {
  add_run(app, context);
  add_plan(app, context);
  add_ps(app, context);
  add_show(app, context);
  add_tasks(app, context);
  add_apply(app, context);
  add_apps(app, context);
  add_jobs(app, context);
  add_validate(app, context);
  add_logs(app, context);
  add_exec(app, context);
  add_attach(app, context);
  add_files(app, context);
  add_sharing(app, context);
  add_images(app, context);
  add_machine(app, context);
  add_cordon(app, context);
  add_backup(app, context);
  add_cdi(app, context);
  add_doctor(app, context);
  add_completion(app, context);
  add_serve(app, context);
  add_kube(app, context);
}

struct HelpOptions {
  std::string command;
};

Result<int> help(Context& context, const HelpOptions& options) {
  const auto& app = *context.app;
  const auto is_wanted = [&](const CLI::App* child) { return child->check_name(options.command); };
  const auto found = app.get_subcommands(is_wanted);
  if (found.empty() && !options.command.empty()) return Failure(unknown_word(app, options.command));
  const auto* command = found.empty() ? &app : found.front();
  const auto name = found.empty() ? app.get_name() : app.get_name() + " " + command->get_name();
  print(app.get_formatter()->make_help(command, name, CLI::AppFormatMode::Normal));
  return 0;
}

void add_help(CLI::App& app, Context& context) {
  auto options = std::make_shared<HelpOptions>();
  auto* command = app.add_subcommand("help", "Print the help of Drover, or of one command");
  command->add_option("command", options->command)->type_name("COMMAND");
  on_call(command, context, options, help);
}

/// Everything after the first "--" is the command to run, whatever it looks like: the parser never sees it.
std::vector<std::string> take_command(std::vector<std::string>& arguments) {
  const auto mark = std::find(arguments.begin(), arguments.end(), "--");
  std::vector<std::string> command;
  if (mark != arguments.end()) command.assign(mark + 1, arguments.end());
  arguments.erase(mark, arguments.end());
  return command;
}

}  // namespace

int run_cli(int argc, const char* const* argv, const Hooks& hooks) {
  CLI::App app("Gives containers exactly the GPUs they should have", "drover");
  Context context;
  context.hooks = &hooks;
  context.app = &app;
  app.require_subcommand(1);
  app.fallthrough();
  app.set_help_all_flag("--help-all", "Print the help of all commands");
  app.set_version_flag("--version", "drover " + hooks.version);
  add_endpoint_options(app, context.endpoint);
  add_commands(app, context);
  add_help(app, context);
  std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
  context.command = take_command(arguments);
  std::reverse(arguments.begin(), arguments.end());  // as the parser takes them
  if (arguments.empty()) {
    print(app.help());
    return error_kind_info(ErrorKind::kInvalid).exit_status;
  }
  try {
    app.parse(arguments);
  } catch (const CLI::Success& wanted) {
    return app.exit(wanted);
  } catch (const CLI::ParseError& error) {
    report_error(usage_error(app, error));
    return error_kind_info(ErrorKind::kInvalid).exit_status;
  } catch (const nlohmann::json::exception& error) {
    report_error({ErrorKind::kInternal, fmt::format("The daemon's answer makes no sense: {}", error.what()),
                  "is it of another version? 'drover doctor' tells", ""});
    return error_kind_info(ErrorKind::kInternal).exit_status;
  } catch (const std::exception& error) {
    report_error({ErrorKind::kInternal,
                  fmt::format("Drover has come upon a mistake of its own: {}", error.what()),
                  "please report it, with what was done and what 'drover doctor' says", ""});
    return error_kind_info(ErrorKind::kInternal).exit_status;
  }
  return context.exit_status;
}

}  // namespace drover::cli
