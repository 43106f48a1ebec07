// `drover attach`: back in front of a task that runs, as `drover run` was.

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "cli/commands/commands.h"
#include "cli/foreground.h"
#include "cli/input_sender.h"
#include "cli/interrupts.h"

namespace drover::cli {
namespace {

using nlohmann::json;

struct AttachOptions {
  std::string task;
  std::int64_t tail = 0;
};

Result<int> attach(Context& context, const AttachOptions& options) {
  const auto client = context.client();
  DROVER_TRY(const auto record, client.get(task_target(options.task)));
  if (!record.value("finished_at", json()).is_null())
    return fail(ErrorKind::kConflict, fmt::format("The task '{}' has ended", options.task),
                "'drover logs' prints what it wrote");
  const auto& task = record.at("task");
  const auto id = task.value("id", "");
  const bool is_terminal = task.contains("tty");
  if (is_terminal && ::isatty(STDIN_FILENO) == 0)
    return fail(ErrorKind::kInvalid,
                fmt::format("The task '{}' has a terminal, and here is none", options.task),
                "'drover logs -f' shows what it writes");
  ::signal(SIGPIPE, SIG_IGN);
  Foreground foreground(client, followed({record}), STDOUT_FILENO, {.tail = options.tail});
  const Interrupts interrupts([&](int signal) { foreground.interrupt(signal); });
  const bool reads = task.value("stdin", false);
  DROVER_TRY(const auto ends,
             follow_with_input(client, id, foreground,
                               {.reads = reads, .is_terminal = is_terminal, .redraw = true}));
  if (ends.empty()) return 128 + foreground.last_signal();
  return judge_end(ends, foreground.last_signal());
}

}  // namespace

void add_attach(CLI::App& app, Context& context) {
  auto options = std::make_shared<AttachOptions>();
  auto* command = app.add_subcommand("attach", "Come back to a task that runs: its output, and its input");
  command->add_option("task", options->task, "Id, the beginning of an id, or name")
      ->required()
      ->type_name("TASK");
  command->add_option("--tail", options->tail, "Begin with the last N lines")
      ->type_name("N")
      ->check(CLI::Range(0, 1'000'000));
  command->footer("Ctrl-C asks the task to stop. Ctrl-P Ctrl-Q leaves a terminal and lets the task go on.");
  on_call(command, context, options, attach);
}

}  // namespace drover::cli
