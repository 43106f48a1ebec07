#include "cli/cli.h"

#include <fmt/format.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "base/units.h"
#include "cli/commands/commands.h"
#include "cli/completion.h"
#include "cli/context.h"
#include "cli/contexts.h"
#include "cli/help.h"
#include "cli/line.h"
#include "cli/man_page.h"
#include "cli/usage.h"

namespace drover::cli {
namespace {

constexpr std::chrono::hours kMostPatience{24};

std::string environment(const char* name, const char* fallback = "") {
  const char* value = std::getenv(name);
  return value == nullptr || *value == '\0' ? fallback : value;
}

/// The daemon of the context of that name, or of the one in use; none: that of this machine.
Result<NamedContext> context_to_use(const std::string& wanted) {
  if (wanted == kNoContext) return NamedContext{};
  DROVER_TRY(const auto contexts, read_contexts());
  const auto& name = wanted.empty() ? contexts.used : wanted;
  return name.empty() ? NamedContext{} : contexts.find(name);
}

void take_context(const Hooks& hooks, const std::string& wanted, bool token_said, Endpoint& endpoint) {
  auto named = context_to_use(wanted);
  if (!named) {
    endpoint.trouble = std::move(named.error());
    return;
  }
  if (!named->socket.empty()) endpoint.socket = named->socket;
  if (!named->kubeconfig.empty()) {
    auto gateway = find_gateway(hooks, *named);
    if (!gateway) {
      endpoint.trouble = std::move(gateway.error());
      return;
    }
    named->host = gateway->url;
    endpoint.gateway = std::move(*gateway);
  }
  if (named->host.empty()) return;
  endpoint.url = named->host;
  if (!token_said) endpoint.token = named->token;  // that of the environment is for another daemon
  if (!named->ca_file.empty()) endpoint.ca_file = named->ca_file;
}

void add_endpoint_options(CLI::App& app, Context& context) {
  auto& endpoint = context.endpoint;
  endpoint = {environment("DROVER_SOCKET", kDefaultSocket), environment("DROVER_HOST"),
              environment("DROVER_TOKEN"), environment("DROVER_CA_FILE")};
  const auto set_patience = [&endpoint](const std::string& text) {
    const auto patience = parse_duration(text);
    if (!patience) throw CLI::ValidationError("--patience", patience.error().message);
    endpoint.patience = std::min<std::chrono::milliseconds>(*patience, kMostPatience);
  };
  auto* socket =
      app.add_option("--socket", endpoint.socket, "Socket of the daemon (DROVER_SOCKET)")->type_name("PATH");
  auto* host = app.add_option("--host", endpoint.url,
                              "Use a daemon over TCP: http://HOST:PORT or https://HOST:PORT (DROVER_HOST)")
                   ->type_name("URL");
  auto* token =
      app.add_option("--token", endpoint.token, "Secret for --host (DROVER_TOKEN)")->type_name("TOKEN");
  const auto wanted = std::make_shared<std::string>(environment("DROVER_CONTEXT"));
  app.add_option("--context", *wanted,
                 "Use the daemon of that name, see 'drover context'; 'none': this machine's (DROVER_CONTEXT)")
      ->type_name("NAME")
      ->excludes(socket)
      ->excludes(host);
  app.parse_complete_callback([&context, &endpoint, wanted, socket, host, token] {
    const bool on_line = socket->count() + host->count() > 0;
    const bool in_environment = !environment("DROVER_SOCKET").empty() || !environment("DROVER_HOST").empty();
    context.token_said = endpoint.token;
    context.endpoint_said = on_line || (wanted->empty() && in_environment);
    if (!context.endpoint_said) take_context(*context.hooks, *wanted, token->count() > 0, endpoint);
  });
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
  add_submit(app, context);
  add_ps(app, context);
  add_show(app, context);
  add_tasks(app, context);
  add_stats(app, context);
  add_resize(app, context);
  add_apply(app, context);
  add_export(app, context);
  add_apps(app, context);
  add_jobs(app, context);
  add_validate(app, context);
  add_init(app, context);
  add_logs(app, context);
  add_events(app, context);
  add_report(app, context);
  add_exec(app, context);
  add_attach(app, context);
  add_forward(app, context);
  add_ui(app, context);
  add_files(app, context);
  add_sharing(app, context);
  add_images(app, context);
  add_machine(app, context);
  add_top(app, context);
  add_cordon(app, context);
  add_backup(app, context);
  add_cdi(app, context);
  add_doctor(app, context);
  add_completion(app, context);
  add_serve(app, context);
  add_contexts(app, context);
  add_kube(app, context);
}

struct HelpOptions {
  std::vector<std::string> words;
};

Result<int> help(Context& context, const HelpOptions& options) {
  DROVER_TRY(const auto line, read_line(*context.app, options.words));
  print(help_of(line.command()));
  return 0;
}

void add_help(CLI::App& app, Context& context) {
  auto options = std::make_shared<HelpOptions>();
  auto* command = app.add_subcommand("help", "Print the help of Drover, or of one command");
  command->add_option("command", options->words, "Which: run, or app scale")->type_name(kCommandWords);
  on_call(command, context, options, help);
}

struct ManOptions {
  std::string folder;
};

Result<int> write_man_pages(Context& context, const ManOptions& options) {
  for (const auto& [name, text] : man_pages(*context.app, context.hooks->version))
    DROVER_CHECK_OK(write_file(options.folder + "/" + name, text));
  return 0;
}

/// For who packs the program.
void add_man_pages(CLI::App& app, Context& context) {
  auto options = std::make_shared<ManOptions>();
  auto* command =
      app.add_subcommand("man-pages", "Write a manual page for each command into a folder")->group("");
  command->add_option("folder", options->folder, "Where")->required()->type_name("FOLDER");
  on_call(command, context, options, write_man_pages);
}

/// What the process exits with when it is not told to run anything that there is.
int refuse(const Error& error) {
  report_error(error);
  return error_kind_info(error.kind).exit_status;
}

/// Reads the line and does what it says.
int call(CLI::App& app, Context& context, const std::vector<std::string>& words) {
  const auto line = read_line(app, words);
  const auto& written = line ? line->arguments() : words;
  report_errors_as_json(std::ranges::find(written, "--json") != written.end());
  if (!line) return refuse(line.error());
  for (const auto& note : line->notes()) report(note);
  context.command = line->command_to_run();
  std::vector<std::string> arguments(line->arguments().rbegin(),
                                     line->arguments().rend());  // as the parser takes them
  app.parse(std::move(arguments));
  return context.exit_status;
}

}  // namespace

int run_cli(int argc, const char* const* argv, const Hooks& hooks) {
  CLI::App app("Gives containers exactly the GPUs they should have", "drover");
  Context context;
  context.hooks = &hooks;
  context.app = &app;
  app.require_subcommand(1);
  app.fallthrough();
  app.set_version_flag("--version", "drover " + hooks.version);
  add_endpoint_options(app, context);
  add_commands(app, context);
  add_help(app, context);
  add_man_pages(app, context);
  app.set_help_all_flag("--help-all",
                        "Print the help of all commands");  // behind the commands: none inherits it
  set_help(app);
  const std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  if (words.empty() || words.front() == "--") {
    print(app.help());
    return error_kind_info(ErrorKind::kInvalid).exit_status;
  }
  try {
    return call(app, context, words);
  } catch (const CLI::Success& wanted) {
    return app.exit(wanted);
  } catch (const CLI::ParseError& error) {
    return refuse(usage_error(app, error));
  } catch (const nlohmann::json::exception& error) {
    return refuse({ErrorKind::kInternal, fmt::format("The daemon's answer makes no sense: {}", error.what()),
                   "is it of another version? 'drover doctor' tells", ""});
  } catch (const std::exception& error) {
    return refuse({ErrorKind::kInternal,
                   fmt::format("Drover has come upon a mistake of its own: {}", error.what()),
                   "please report it, with what was done and what 'drover doctor' says", ""});
  }
}

}  // namespace drover::cli
