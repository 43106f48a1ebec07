#include "cli/completion.h"

#include "cli/commands/commands.h"

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

}  // namespace

void add_completion(CLI::App& app, Context& context) {
  auto options = std::make_shared<CompletionOptions>();
  auto* command = app.add_subcommand("completion", "Print a completion script for your shell");
  command->add_option("shell", options->shell, "bash, zsh or fish")->required()->type_name("SHELL");
  on_call(command, context, options, completion);
}

}  // namespace drover::cli
