#include <fmt/format.h>
#include <unistd.h>

#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/files.h"
#include "cli/commands/commands.h"
#include "cli/follow.h"
#include "cli/foreground.h"
#include "cli/usage.h"

namespace drover::cli {
namespace {

using nlohmann::json;

struct LogsOptions {
  std::string task;
  bool follow = false;
  bool only_stdout = false;
  bool only_stderr = false;
  std::int64_t tail = -1;
};

/// Writes a task's output to ours; false when nobody reads it any more.
bool pass_on(std::string_view stream, std::string_view bytes) {
  const int fd = stream == "stderr" ? STDERR_FILENO : STDOUT_FILENO;
  return write_all(fd, bytes, std::string(stream)).has_value();
}

std::string chosen_stream(const LogsOptions& options) {
  if (options.only_stdout == options.only_stderr) return "";
  return options.only_stdout ? "stdout" : "stderr";
}

/// The tasks that a gang, an array, an app or a job has now, by its id or name; empty when there is none of
/// that name. A job has one: its newest run.
Result<std::vector<json>> tasks_of_several(const Client& client, const std::string& name) {
  const auto app = name.starts_with('/') ? name : "/" + name;
  std::vector<json> members, instances;
  std::optional<json> run;
  const auto sort_in = [&](const json& record) {
    const auto& task = record.at("task");
    const auto origin = task.value("origin", json::object());
    const auto kind = origin.value("kind", ""), of = origin.value("name", "");
    for (const auto* whole : {"gang", "array"})
      if (task.value(whole, json::object()).value("id", "") == name) members.push_back(record);
    if (kind == "service" && of == app && record.value("finished_at", json()).is_null())
      instances.push_back(record);
    if (kind == "schedule" && of == name) run = record;
  };
  DROVER_CHECK_OK(client.get_items("/v1/tasks", "tasks", sort_in));
  if (!members.empty()) return members;
  if (!instances.empty()) return instances;
  return run ? std::vector<json>{*run} : std::vector<json>();
}

FollowOptions following(const LogsOptions& options) {
  return {.stream = chosen_stream(options), .tail = options.tail};
}

Result<int> follow_one(const Client& client, const std::string& id, const LogsOptions& options) {
  FollowHandlers handlers;
  handlers.output = pass_on;
  handlers.state = [](const json&) {};
  handlers.give_up = [] { return false; };
  DROVER_CHECK_OK(follow_task(client, id, following(options), handlers).map([](const json&) {}));
  return 0;
}

/// What is there now; `take` gets it piece by piece, and ends it by saying false.
Status read_logs(const Client& client, const std::string& id, const LogsOptions& options,
                 const std::function<bool(std::string_view stream, std::string_view piece)>& take) {
  for (const std::string stream : {"stdout", "stderr"}) {
    if (const auto chosen = chosen_stream(options); !chosen.empty() && chosen != stream) continue;
    auto target = task_target(id, "/logs?stream=" + stream);
    if (options.tail >= 0) target += fmt::format("&tail={}", options.tail);
    DROVER_CHECK_OK(client.stream(target, "", [&](std::string_view piece) { return take(stream, piece); }));
  }
  return {};
}

/// One after the other, or all at once when they are followed; each line begins with the number of its task.
Result<int> logs_of_several(const Client& client, const std::vector<json>& records,
                            const LogsOptions& options) {
  const auto tasks = followed(records);
  if (options.follow)
    return Foreground(client, tasks, STDOUT_FILENO, following(options)).follow().map([](const auto&) {
      return 0;
    });
  for (std::size_t i = 0; i < tasks.ids.size(); ++i) {
    std::map<std::string, RankedLines, std::less<>> lines;
    const auto take = [&](std::string_view stream, std::string_view piece) {
      return pass_on(stream,
                     lines.try_emplace(std::string(stream), tasks.ranks[i]).first->second.take(piece));
    };
    DROVER_CHECK_OK(read_logs(client, tasks.ids[i], options, take));
    for (auto& [stream, rest] : lines) pass_on(stream, rest.rest());
  }
  return 0;
}

/// The records of the tasks that are meant: one, or those of a gang or an array, or the instances of an app.
Result<std::vector<json>> meant_by(const Client& client, const std::string& name) {
  const auto record = client.get(task_target(name));
  std::vector<json> records;
  if (record) {
    const auto& task = record->at("task");
    const auto whole = task.value("gang", task.value("array", json::object())).value("id", "");
    const bool by_id = task.value("id", "").starts_with(name);
    if (whole.empty() || by_id) return std::vector<json>{*record};
    DROVER_TRY(records, tasks_of_several(client, whole));
  } else {
    DROVER_TRY(records, tasks_of_several(client, name));
  }
  if (records.empty() && !record) return Failure(record.error());
  return records;
}

Result<int> logs(Context& context, const LogsOptions& options) {
  const auto client = context.client();
  DROVER_TRY(const auto records, meant_by(client, options.task));
  if (records.size() > 1) return logs_of_several(client, records, options);
  const auto id = records.front().at("task").value("id", "");
  if (options.follow) return follow_one(client, id, options);
  DROVER_CHECK_OK(read_logs(client, id, options, pass_on));
  return 0;
}

}  // namespace

void add_logs(CLI::App& app, Context& context) {
  auto log_options = std::make_shared<LogsOptions>();
  auto* logs_command =
      app.add_subcommand("logs", "Print what a task, a gang, an app or a job's last run wrote");
  logs_command->add_option("task", log_options->task, "Id, the beginning of an id, or name")
      ->required()
      ->type_name("TASK");
  logs_command->add_flag("--follow,-f", log_options->follow, "Go on until the task has ended");
  logs_command->add_flag("--stdout", log_options->only_stdout, "Only its standard output");
  logs_command->add_flag("--stderr", log_options->only_stderr, "Only its standard error");
  logs_command->add_option("--tail,-n", log_options->tail, "Begin with the last N lines")
      ->type_name("N")
      ->check(between(0, 1'000'000));
  on_call(logs_command, context, log_options, logs);
}

}  // namespace drover::cli
