#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "base/units.h"
#include "cli/commands/commands.h"
#include "cli/printable.h"
#include "cli/table.h"
#include "cli/words.h"

namespace drover::cli {
namespace {

using nlohmann::json;

struct PsOptions {
  bool all = false;
  bool json = false;
};
struct TaskOptions {
  std::vector<std::string> tasks;
  bool force = false;
  bool json = false;
};

bool is_final(const std::string& state) {
  return state == "finished" || state == "failed" || state == "killed" || state == "lost";
}

/// The field, or null when it is not there: a list of ten thousand is read without copies.
const json& field_or_null(const json& object, const char* name) {
  static const json none;
  const auto found = object.find(name);
  return found == object.end() ? none : *found;
}

std::string age(const json& record) {
  const auto submitted = parse_time(record.value("submitted_at", ""));
  if (!submitted) return "";
  const auto now = wall_clock();
  return format_duration(std::max(now - *submitted, std::chrono::milliseconds(0)));
}

/// Which GPUs it has, by index, or how many it wants while it waits.
std::string gpus_of(const json& record, const KnownGpus& gpus) {
  const auto& task = record.at("task");
  const auto& grants = field_or_null(record, "grants");
  if (!grants.empty()) return granted(grants, field_or_null(task, "gpu_share"), gpus);
  const auto request = wanted(task);
  return request == "-" || is_final(record.value("state", "")) ? "-" : "wants " + request;
}

/// "train", and for a member of a gang its rank: "train[2]".
std::string name_of(const json& task) {
  const auto& gang = field_or_null(task, "gang");
  const auto rank = gang.is_object() ? fmt::format("[{}]", gang.value("rank", 0)) : "";
  return task.value("name", "") + rank;
}

/// "research/vision", with the priority when it is not the usual one: "default +5".
std::string queue_of(const json& task) {
  const int priority = task.value("priority", 0);
  return task.value("queue", "") + (priority == 0 ? "" : fmt::format(" {:+}", priority));
}

std::string status_of(const json& record) {
  auto reason = record.value("reason", "");
  if (!reason.empty()) return reason;
  const auto& status = field_or_null(record, "exit_status");
  return status.is_number() ? fmt::format("exited with status {}", status.dump()) : "";
}

Result<int> ps(Context& context, const PsOptions& options) {
  const auto client = context.client();
  const auto which = fmt::format("/v1/tasks?active={}&summary={}", !options.all, !options.json);
  if (options.json) {
    DROVER_TRY(const auto listing, client.get(which));
    print_json(listing);
    return 0;
  }
  DROVER_TRY(const auto gpus, client.get("/v1/gpus"));
  const KnownGpus known(gpus);
  const bool simulated = gpus.value("simulated", false);
  Table table(
      {"ID", "NAME", "USER", "QUEUE", "STATE", simulated ? "GPUS (simulated)" : "GPUS", "AGE", "STATUS"});
  const auto add = [&](const json& record) {
    const auto& task = record.at("task");
    table.add({task.value("id", ""), name_of(task), task.at("user").value("name", ""), queue_of(task),
               record.value("state", ""), gpus_of(record, known), age(record), status_of(record)});
  };
  DROVER_CHECK_OK(client.get_items(which, "tasks", add));
  print(table.render());
  return 0;
}

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

Result<int> explain(Context& context, const TaskOptions& options) {
  DROVER_TRY(const auto answer, context.client().get(task_target(options.tasks.front(), "/explain")));
  if (options.json) {
    print_json(answer);
    return 0;
  }
  auto text = fmt::format(
      "Task {} is {}{}", answer.value("id", ""), answer.value("state", ""),
      answer.value("place", 0) > 0 ? fmt::format(" at place {}", answer.value("place", 0)) : std::string());
  text += ", queue " + queue_of(answer);
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
  auto list = std::make_shared<PsOptions>();
  auto* ps_command = app.add_subcommand("ps", "List tasks: those that wait or run, or all");
  ps_command->add_flag("--all,-a", list->all, "Also those that have ended");
  ps_command->add_flag("--json", list->json, "Print JSON");
  on_call(ps_command, context, list, ps);

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
