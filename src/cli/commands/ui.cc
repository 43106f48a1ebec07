// `drover ui`: the web page in this user's browser, without a token.

#include <fmt/format.h>
#include <signal.h>
#include <spawn.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "cli/commands/commands.h"
#include "cli/port_forward.h"

namespace drover::cli {
namespace {

struct UiOptions {
  int port = 0;
  bool no_browser = false;
};

/// By a file that only this user reads, which leads there: what a program is called with, all users of the
/// machine may read, and the first of them to come would be taken for this one.
Status open_browser(const std::string& address) {
  const char* const runtime = ::getenv("XDG_RUNTIME_DIR");
  const bool has_screen = ::getenv("DISPLAY") != nullptr || ::getenv("WAYLAND_DISPLAY") != nullptr;
  if (runtime == nullptr || !has_screen) return {};
  const auto path = fmt::format("{}/drover-ui.html", runtime);
  DROVER_CHECK_OK(write_file(
      path,
      fmt::format("<!doctype html><meta http-equiv=refresh content=\"0; url={}\"><title>Drover</title>\n",
                  address),
      0600));
  std::array<const char*, 3> words{"xdg-open", path.c_str(), nullptr};
  pid_t child = 0;
  ::signal(SIGCHLD, SIG_IGN);  // nobody waits for it
  (void)::posix_spawnp(&child, words[0], nullptr, nullptr, const_cast<char* const*>(words.data()), environ);
  return {};
}

Result<int> show_page(Context& context, const UiOptions& options) {
  const auto client = context.client();
  DROVER_TRY(const auto forward, PortForward::open(client, "/v1/page", "drover-page", options.port));
  DROVER_TRY(const auto made, client.post("/v1/tickets", nlohmann::json::object()));
  ::signal(SIGPIPE, SIG_IGN);
  const auto address = fmt::format("http://127.0.0.1:{}/ui/", forward.here());
  const auto with_ticket = fmt::format("{}#ticket={}", address, made.value("ticket", ""));
  print(fmt::format("{}\n", with_ticket));
  report("the address is good once, for a minute; the page stays until Ctrl-C");
  if (!options.no_browser) DROVER_CHECK_OK(open_browser(with_ticket));
  DROVER_CHECK_OK(forward.serve());
  return 0;
}

}  // namespace

void add_ui(CLI::App& app, Context& context) {
  auto options = std::make_shared<UiOptions>();
  auto* command = app.add_subcommand("ui", "Show the machine in a web page");
  command->add_option("--port", options->port, "Of this machine's loopback address; 0: any that is free")
      ->check(CLI::Range(0, 65535))
      ->type_name("PORT");
  command->add_flag("--no-browser", options->no_browser, "Only say where the page is");
  command->footer(
      "The page is yours alone, and ends with Ctrl-C. From another computer: ssh -L 8080:127.0.0.1:8080 "
      "MACHINE drover ui "
      "--port 8080 --no-browser");
  on_call(command, context, options, show_page);
}

}  // namespace drover::cli
