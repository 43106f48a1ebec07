#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/units.h"
#include "cli/commands/commands.h"
#include "cli/printable.h"
#include "cli/task_rows.h"

namespace drover::cli {
namespace {

using nlohmann::json;

struct TaskOptions {
  std::vector<std::string> tasks;
  bool force = false;
  bool json = false;
};

/// Goes on with the others when one fails, and fails as the last of them did.
template <typename Function>
Result<int> for_each_task(const TaskOptions& options, Function function) {
  int exit_status = 0;
  for (const auto& task : options.tasks) {
    const Status done = function(task);
    if (done) continue;
    report_error(done.error());
    exit_status = error_kind_info(done.error().kind).exit_status;
  }
  return exit_status;
}

Result<int> stop(Context& context, const TaskOptions& options) {
  const auto client = context.client();
  return for_each_task(options, [&](const std::string& task) -> Status {
    return client.post(task_target(task, "/stop"), {{"force", options.force}}).map([](const json&) {});
  });
}

Result<int> remove(Context& context, const TaskOptions& options) {
  const auto client = context.client();
  return for_each_task(options, [&](const std::string& task) { return client.remove(task_target(task)); });
}

/// "is running", "has failed"
std::string state_words(const std::string& state) {
  if (state == "finished" || state == "failed") return "has " + state;
  return (state == "killed" || state == "lost" ? "was " : "is ") + state;
}

Result<int> explain(Context& context, const TaskOptions& options) {
  DROVER_TRY(const auto answer, context.client().get(task_target(options.tasks.front(), "/explain")));
  if (options.json) {
    print_json(answer);
    return 0;
  }
  auto text = fmt::format(
      "Task {} {}{}", answer.value("id", ""), state_words(answer.value("state", "")),
      answer.value("place", 0) > 0 ? fmt::format(" at place {}", answer.value("place", 0)) : std::string());
  text += ", queue " + queue_of_task(answer);
  text += "\n";
  if (const auto wants = answer.value("wanted", json::object()); !wants.empty())
    text += fmt::format("  with {}\n", amounts(wants, false));
  if (const auto gang = answer.value("gang", json::object()); !gang.empty())
    text += fmt::format("  it is rank {} of the {} members of the gang {}\n", gang.value("rank", 0),
                        gang.value("size", 0), gang.value("id", ""));
  for (const auto& reason : answer.value("reasons", json::array()))
    text += "  " + printable(reason.get<std::string>()) + "\n";
  for (const auto& remedy : answer.value("remedies", json::array()))
    text += "  what helps: " + printable(remedy.get<std::string>()) + "\n";
  print(text);
  return 0;
}

Result<int> inspect(Context& context, const TaskOptions& options) {
  DROVER_TRY(const auto record, context.client().get(task_target(options.tasks.front())));
  print_json(record);
  return 0;
}

CLI::App* add_for_task(CLI::App& app, Context& context, const std::string& name, const std::string& help,
                       Result<int> (*body)(Context&, const TaskOptions&),
                       const std::shared_ptr<TaskOptions>& options, int most) {
  auto* command = app.add_subcommand(name, help);
  command->add_option("task", options->tasks, "Id, the beginning of an id, or name")
      ->required()
      ->type_name("TASK")
      ->expected(1, most);
  on_call(command, context, options, body);
  return command;
}

}  // namespace

void add_tasks(CLI::App& app, Context& context) {
  constexpr int kMany = 1000;
  auto stopping = std::make_shared<TaskOptions>();
  auto* stop_command = add_for_task(app, context, "stop", "Ask tasks to end", stop, stopping, kMany);
  stop_command->add_flag("--force", stopping->force, "Kill at once, without the grace time");
  add_for_task(app, context, "rm", "Forget tasks that have ended, and remove their sandboxes", remove,
               std::make_shared<TaskOptions>(), kMany);
  auto explaining = std::make_shared<TaskOptions>();
  auto* explain_command =
      add_for_task(app, context, "explain", "Say why a task is where it is", explain, explaining, 1);
  explain_command->add_flag("--json", explaining->json, "Print JSON");
  add_for_task(app, context, "inspect", "Print all that is known of a task, as JSON", inspect,
               std::make_shared<TaskOptions>(), 1);
}

}  // namespace drover::cli
