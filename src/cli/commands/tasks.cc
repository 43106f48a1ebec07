#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <type_traits>

#include "base/units.h"
#include "cli/commands/commands.h"
#include "cli/commands/on_cluster.h"
#include "cli/flags.h"
#include "cli/list_format.h"
#include "cli/moments.h"
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

struct ExplainOptions : TaskOptions {
  std::string pod;  ///< [NAMESPACE/]NAME, of a cluster
  OnCluster cluster;
};

struct InspectOptions {
  std::vector<std::string> tasks;
  std::string format;  ///< list_format.h; "": all of it
};

/// Tasks by their ids and names, or all of a kind.
struct ManyOptions : TaskOptions {
  bool all = false;  ///< or all that have ended, for those who remove
  std::string older_than;
  TaskFilter filter;

  bool filters() const {
    return !filter.users.empty() || !filter.queues.empty() || !filter.labels.empty() || !filter.name.empty();
  }
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

/// What others start anew, or end by themselves, when it is stopped.
bool is_of_definition(const json& record) {
  return record.at("task").value("origin", json::object()).value("kind", "person") != "person";
}

/// Ids of what the flags mean, those that wait before those that run: nothing is to start that is stopped
/// next. Only one's own, where nothing says whose.
Result<std::vector<std::string>> chosen_ids(const Client& client, const ManyOptions& options, bool ended,
                                            std::optional<TimePoint> before) {
  const auto target =
      fmt::format("/v1/tasks?active={}&own={}", !ended, options.filter.users.empty() && options.all);
  std::vector<std::string> waiting, others;
  std::size_t left = 0;
  const auto take = [&](const json& record) {
    const auto state = record.value("state", "");
    if (is_final_state(state) != ended || !options.filter.takes(record)) return;
    const auto finished = parse_time(record.value("finished_at", ""));
    if (before && (!finished || *finished > *before)) return;
    if (!ended && is_of_definition(record)) {
      ++left;
      return;
    }
    (state == "queued" ? waiting : others).push_back(record.at("task").value("id", ""));
  };
  DROVER_CHECK_OK(client.get_items(target, "tasks", take));
  if (left > 0)
    report(fmt::format(
        "{} of apps, jobs and frameworks are left as they are: 'drover app' and 'drover job' stop "
        "those",
        left));
  waiting.insert(waiting.end(), others.begin(), others.end());
  return waiting;
}

/// Does it to all that the flags mean, or to those that are named.
template <typename Function>
Result<int> for_all_meant(const Client& client, ManyOptions options, bool ended,
                          std::optional<TimePoint> before, const char* what_was_done, Function function) {
  const bool many = options.all || options.filters();
  if (many && !options.tasks.empty())
    return fail(ErrorKind::kInvalid, "Tasks are named, and all of a kind are asked for",
                "write one of the two");
  if (!many && options.tasks.empty())
    return fail(ErrorKind::kInvalid, "Which tasks is not said", "name them, or all of a kind: --help");
  if (!many) return for_each_task(options, function);
  DROVER_TRY(options.tasks, chosen_ids(client, options, ended, before));
  // What has gone meanwhile is what was asked for.
  std::size_t done = 0;
  DROVER_TRY(const int status, for_each_task(options, [&](const std::string& task) -> Status {
               const Status result = function(task);
               if (result) ++done;
               const bool gone = !result && (result.error().kind == ErrorKind::kNotFound ||
                                             result.error().kind == ErrorKind::kConflict);
               return gone ? Status() : result;
             }));
  report(fmt::format("{} {} {}", done, done == 1 ? "task was" : "tasks were", what_was_done));
  return status;
}

Result<int> stop(Context& context, const ManyOptions& options) {
  const auto client = context.client();
  return for_all_meant(client, options, false, std::nullopt, "asked to end", [&](const auto& task) -> Status {
    return client.post(task_target(task, "/stop"), {{"force", options.force}}).map([](const json&) {});
  });
}

Result<int> remove(Context& context, const ManyOptions& options) {
  std::optional<TimePoint> before;
  if (!options.older_than.empty()) {
    if (!options.all && !options.filters())
      return fail(ErrorKind::kInvalid, "--older-than: of which tasks is not said", "add --ended");
    DROVER_TRY(before, of_flag(parse_since(options.older_than, wall_clock()), "--older-than"));
  }
  const auto client = context.client();
  return for_all_meant(client, options, true, before, "removed",
                       [&](const auto& task) { return client.remove(task_target(task)); });
}

/// "is running", "has failed"
std::string state_words(const std::string& state) {
  if (state == "finished" || state == "failed") return "has " + state;
  return (state == "killed" || state == "lost" ? "was " : "is ") + state;
}

/// What is thought of a task that waits, by how long tasks like it and those before it have run.
std::string expectation(const json& answer) {
  std::vector<std::string> words;
  constexpr std::chrono::seconds kSoon{1};
  const auto start = parse_time(answer.value("expected_start", ""));
  if (start && *start - wall_clock() < kSoon)
    words.emplace_back("start at any moment");
  else if (start)
    words.push_back("start in about " + format_duration(*start - wall_clock()));
  if (answer.contains("expected_run_ms"))
    words.push_back("run for about " + format_duration(std::chrono::milliseconds(
                                           answer.at("expected_run_ms").get<std::int64_t>())));
  if (words.empty()) return "";
  return fmt::format("  it will probably {}, by how long such tasks have run\n", fmt::join(words, ", and "));
}

Result<int> explain(Context& context, const ExplainOptions& options) {
  if (!options.pod.empty()) return explain_pod(context, options.cluster, options.pod, options.json);
  if (options.tasks.empty())
    return fail(ErrorKind::kInvalid, "Which task is not said", "name it, or a pod of a cluster with --pod");
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
  if (const auto array = answer.value("array", json::object()); !array.empty())
    text += fmt::format("  it is number {} of an array of {}: {}\n", array.value("index", 0),
                        array.value("size", 0), array.value("id", ""));
  for (const auto& reason : answer.value("reasons", json::array()))
    text += "  " + printable(reason.get<std::string>()) + "\n";
  text += expectation(answer);
  for (const auto& remedy : answer.value("remedies", json::array()))
    text += "  what helps: " + printable(remedy.get<std::string>()) + "\n";
  print(text);
  return 0;
}

Result<int> inspect(Context& context, const InspectOptions& options) {
  DROVER_TRY(const auto record, context.client().get(task_target(options.tasks.front())));
  if (options.format.empty() || options.format == "json") {
    print_json(record);
    return 0;
  }
  DROVER_TRY(const auto format, ListFormat::parse(options.format));
  print(format.line_of(record));
  return 0;
}

template <typename Options>
CLI::App* add_for_task(CLI::App& app, Context& context, const std::string& name, const std::string& help,
                       Result<int> (*body)(Context&, const Options&), const std::shared_ptr<Options>& options,
                       int most) {
  auto* command = app.add_subcommand(name, help);
  auto* tasks = command->add_option("task", options->tasks, "Id, the beginning of an id, or name")
                    ->type_name("TASK")
                    ->expected(1, most);
  if constexpr (!std::is_same_v<Options, ManyOptions> && !std::is_same_v<Options, ExplainOptions>)
    tasks->required();
  on_call(command, context, options, body);
  return command;
}

void add_filter(CLI::App& command, TaskFilter& filter) {
  const auto group = [](CLI::Option* option) { option->group("All of a kind"); };
  group(cli::add_list(command, "--user", filter.users, "USER", "Those of this user, which is for root"));
  group(cli::add_list(command, "--queue", filter.queues, "PATH", "Those in this queue, or below it"));
  group(cli::add_list(command, "--label", filter.labels, "NAME[=VALUE]", "Those with this label"));
  group(add_text(command, "--name", filter.name, "NAME", "Those of this name; * stands for any text"));
}

}  // namespace

void add_tasks(CLI::App& app, Context& context) {
  constexpr int kMany = 1000;
  auto stopping = std::make_shared<ManyOptions>();
  auto* stop_command = add_for_task(app, context, "stop", "Ask tasks to end", stop, stopping, kMany);
  stop_command->add_flag("--force", stopping->force, "Kill at once, without the grace time");
  stop_command->add_flag("--all", stopping->all, "All of yours")->group("All of a kind");
  add_filter(*stop_command, stopping->filter);
  auto removing = std::make_shared<ManyOptions>();
  auto* remove_command =
      add_for_task(app, context, "rm", "Forget tasks that have ended, and remove their sandboxes", remove,
                   removing, kMany);
  remove_command->add_flag("--ended", removing->all, "All of yours that have ended")->group("All of a kind");
  add_text(*remove_command, "--older-than", removing->older_than, "TIME", "Only what ended so long ago: 2d")
      ->group("All of a kind");
  add_filter(*remove_command, removing->filter);
  auto explaining = std::make_shared<ExplainOptions>();
  auto* explain_command =
      add_for_task(app, context, "explain", "Say why a task is where it is", explain, explaining, 1);
  explain_command->add_flag("--json", explaining->json, "Print JSON");
  add_text(*explain_command, "--pod", explaining->pod, "[NAMESPACE/]NAME",
           "A pod of a Kubernetes cluster instead, with your own rights there")
      ->excludes("task")
      ->group("On a Kubernetes cluster");
  add_on_cluster_flags(*explain_command, explaining->cluster, false);
  auto inspecting = std::make_shared<InspectOptions>();
  auto* inspect_command = add_for_task(app, context, "inspect", "Print all that is known of a task, as JSON",
                                       inspect, inspecting, 1);
  add_text(*inspect_command, "--format,-f", inspecting->format, "FORMAT",
           "Only these fields: '{state} {task.name}'");
}

}  // namespace drover::cli
