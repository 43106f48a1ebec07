#include "cli/commands/commands.h"

namespace drover::cli {
namespace {

Result<int> serve(Context& context, const ServeOptions& options) {
  auto chosen = options;
  chosen.socket = context.endpoint.socket;
  DROVER_CHECK_OK(context.hooks->serve(chosen));
  return 0;
}

}  // namespace

void add_serve(CLI::App& app, Context& context) {
  auto options = std::make_shared<ServeOptions>();
  auto* command = app.add_subcommand("serve", "Run the daemon of this machine, in the foreground");
  command->add_option("--state", options->state, "Folder for everything that the daemon keeps")
      ->type_name("DIR")
      ->capture_default_str();
  command->add_option("--listen", options->listen, "Also serve on TCP; each request shows a secret")
      ->type_name("HOST:PORT");
  command->add_option("--simulate", options->simulate, "Offer simulated GPUs: a profile's name, or a file")
      ->type_name("PROFILE");
  command->add_option("--driver-root", options->driver_root, "Where to look for the driver's files")
      ->type_name("DIR");
  command->add_option("--runtime", options->runtime, "OCI runtime to use; found by trying when not given")
      ->type_name("NAME");
  on_call(command, context, options, serve);
}

}  // namespace drover::cli
