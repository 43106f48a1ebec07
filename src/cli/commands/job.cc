// Jobs, as Chronos' API has them: list, show, run, history, remove, kill.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>

#include "base/units.h"
#include "cli/commands/commands.h"
#include "cli/printable.h"
#include "cli/services/api.h"
#include "cli/services/jobs.h"
#include "cli/table.h"

namespace drover::cli {
namespace {

using nlohmann::json;

struct JobOptions {
  std::string job;
  std::string arguments;
  bool json = false;
};

/// Of the jobs, by name.
struct States {
  std::map<std::string, std::string> words;  ///< what Chronos says: "idle", "queued", "2 running"
  std::map<std::string, std::string> waits;  ///< why a run of it waits
};

Result<States> states_of(const Client& client) {
  DROVER_TRY(const auto summary, client.get("/v1/scheduler/jobs/summary"));
  States states;
  if (summary.is_object())
    for (const auto& job : summary.value("jobs", json::array()))
      if (job.is_object()) states.words[job.value("name", "")] = job.value("state", "");
  if (std::ranges::none_of(states.words, [](const auto& state) { return state.second == "queued"; }))
    return states;
  const auto add = [&](const json& record) {
    if (record.value("state", "") != "queued") return;
    const auto origin = record.value(json::json_pointer("/task/origin"), json::object());
    if (origin.value("kind", "") == "schedule")
      states.waits[origin.value("name", "")] = record.value("reason", "");
  };
  DROVER_CHECK_OK(client.get_items("/v1/tasks?active=true", "tasks", add));
  return states;
}

Result<int> list_jobs(Context& context, const TableOptions& options) {
  const auto client = context.client();
  DROVER_TRY(const auto jobs, list_jobs(client));
  if (options.json) {
    print_json({{"jobs", jobs}});
    return 0;
  }
  DROVER_TRY(auto states, states_of(client));
  Table table({"JOB", "STATE", "LAST RESULT", "NEXT RUN", "WHY NOT"});
  for (const auto& job : jobs) {
    const auto name = job.value("name", "");
    const auto state = job_state(job, states.words[name], states.waits[name], wall_clock());
    table.add({name, state.state, state.last, state.next, state.why_not});
  }
  DROVER_TRY(const auto text, shown(table, options));
  print(text);
  return 0;
}

/// Chronos' "11/23/26 04:16:38", which is in UTC, as all other times are written.
std::string time_with_zone(const std::string& text) {
  unsigned month = 0, day = 0, year = 0, hour = 0, minute = 0, second = 0;
  if (std::sscanf(text.c_str(), "%2u/%2u/%2u %2u:%2u:%2u", &month, &day, &year, &hour, &minute, &second) != 6)
    return text;
  return fmt::format("20{:02}-{:02}-{:02}T{:02}:{:02}:{:02}Z", year, month, day, hour, minute, second);
}

struct History {
  json runs = json::array();
  json skipped = json::array();
};

Result<History> history_of(const Client& client, const std::string& name) {
  DROVER_TRY(const auto answer, client.get("/v1/scheduler/job/stat/" + percent_encode(name)));
  History history;
  for (auto [field, list] :
       {std::pair("taskStatHistory", &history.runs), std::pair("skippedRuns", &history.skipped)})
    if (answer.is_object() && answer.contains(field) && answer[field].is_array()) *list = answer[field];
  return history;
}

std::string render_history(const History& history) {
  std::string text;
  if (!history.runs.empty()) {
    Table table({"RUN", "STATUS", "STARTED", "ENDED", "TOOK", "WHY"});
    for (const auto& run : history.runs)
      if (run.is_object())
        table.add({run.value("taskId", ""), run.value("status", ""),
                   time_with_zone(run.value("startTime", "")), time_with_zone(run.value("endTime", "")),
                   run.value("duration", ""), run.value("reason", "")});
    text = shown(table);
  }
  for (const auto& skipped : history.skipped) {
    if (!skipped.is_object()) continue;
    const auto count = skipped.value("count", 0);
    const auto due = skipped.value("lastDue", "");
    text +=
        printable(count == 1 ? fmt::format("left out: the run of {}", due)
                             : fmt::format("left out: {} runs, the last of them that of {}", count, due)) +
        printable(fmt::format(": {}", skipped.value("reason", ""))) + "\n";
  }
  return text;
}

Result<int> show(Context& context, const JobOptions& options) {
  const auto client = context.client();
  DROVER_TRY(const auto job, get_job(client, options.job));
  if (options.json) {
    print_json(job);
    return 0;
  }
  DROVER_TRY(auto states, states_of(client));
  DROVER_TRY(const auto history, history_of(client, options.job));
  const auto state = job_state(job, states.words[options.job], states.waits[options.job], wall_clock());
  std::string text = options.job + ": " + state.state + "\n";
  const auto line = [&](const char* what, const std::string& value) {
    if (!value.empty()) text += fmt::format("  {}: {}\n", what, printable(value));
  };
  line("command", job.value("command", ""));
  line("schedule", job.value("schedule", ""));
  line("time zone", job.value("scheduleTimeZone", ""));
  line("after", fmt::format("{}", fmt::join(job.value("parents", std::vector<std::string>()), ", ")));
  line("next run", state.next);
  line("why not", state.why_not);
  line("last result", state.last);
  line("runs",
       fmt::format("{} succeeded, {} failed", job.value("successCount", 0), job.value("errorCount", 0)));
  print(text + render_history(history));
  return 0;
}

Result<int> history(Context& context, const JobOptions& options) {
  const auto client = context.client();
  DROVER_CHECK_OK(get_job(client, options.job));
  DROVER_TRY(const auto history, history_of(client, options.job));
  if (options.json)
    print_json({{"runs", history.runs}, {"skipped", history.skipped}});
  else if (history.runs.empty() && history.skipped.empty())
    print("No run yet\n");
  else
    print(render_history(history));
  return 0;
}

Result<int> run(Context& context, const JobOptions& options) {
  const auto client = context.client();
  DROVER_CHECK_OK(get_job(client, options.job));
  const auto query = options.arguments.empty() ? "" : "?arguments=" + percent_encode(options.arguments);
  DROVER_CHECK_OK(client.put(job_target(options.job, query), json()));
  print(fmt::format("{0}: a run was asked for; 'drover job history {0}' shows how it goes\n",
                    printable(options.job)));
  return 0;
}

Result<int> remove(Context& context, const JobOptions& options) {
  const auto client = context.client();
  DROVER_CHECK_OK(get_job(client, options.job));
  DROVER_CHECK_OK(client.erase(job_target(options.job)));
  print(fmt::format("{}: forgotten, and its runs are ended\n", printable(options.job)));
  return 0;
}

Result<int> kill(Context& context, const JobOptions& options) {
  const auto client = context.client();
  DROVER_CHECK_OK(get_job(client, options.job));
  DROVER_CHECK_OK(client.erase("/v1/scheduler/task/kill/" + percent_encode(options.job)));
  print(fmt::format("{}: the runs that were there are ended\n", printable(options.job)));
  return 0;
}

CLI::App* add(CLI::App* group, Context& context, std::shared_ptr<JobOptions> options, const char* name,
              const char* help, Result<int> (*body)(Context&, const JobOptions&)) {
  auto* command = group->add_subcommand(name, help);
  command->add_option("job", options->job, "Its name")->required()->type_name("JOB");
  on_call(command, context, options, body);
  return command;
}

}  // namespace

void add_jobs(CLI::App& app, Context& context) {
  auto* group = app.add_subcommand("job", "Look at the jobs that run by a schedule, and change them");
  group->require_subcommand(1);
  auto listing = std::make_shared<TableOptions>();
  auto* listed =
      group->add_subcommand("ls", "List the jobs: their last results, and when each runs next, or why not");
  add_list_flags(*listed, *listing);
  on_call(listed, context, listing, list_jobs);
  const auto options = [] { return std::make_shared<JobOptions>(); };
  const auto with_json = [](CLI::App* command, JobOptions& these) {
    command->add_flag("--json", these.json, "Print JSON");
  };
  const auto showing = options();
  with_json(add(group, context, showing, "inspect", "Show a job and its latest runs", show), *showing);
  const auto running = options();
  add(group, context, running, "run", "Run a job now, besides its schedule", run)
      ->add_option("--arguments", running->arguments, "Put behind its command, for this run")
      ->type_name("TEXT");
  const auto looking_back = options();
  with_json(add(group, context, looking_back, "history", "List the runs of a job", history), *looking_back);
  add(group, context, options(), "rm", "Forget a job, and end its runs", remove);
  add(group, context, options(), "kill", "End the runs of a job that are there now", kill);
}

}  // namespace drover::cli
