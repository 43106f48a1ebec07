// `drover ps`: the tasks, as a list.

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/units.h"
#include "cli/commands/commands.h"
#include "cli/flags.h"
#include "cli/list_format.h"
#include "cli/moments.h"
#include "cli/printable.h"
#include "cli/task_rows.h"

namespace drover::cli {
namespace {

using nlohmann::json;

constexpr std::chrono::seconds kBetweenLooks{2};

struct PsOptions : TableOptions {
  bool all = false;
  bool quiet = false;
  bool watch = false;
  std::size_t newest = 0;
  std::string since, sort;
  TaskFilter filter;
};

/// The states that a word stands for: its own, or several.
Result<std::vector<std::string>> states_of(const std::string& word) {
  if (word == "ended") return std::vector<std::string>{"finished", "failed", "killed", "lost"};
  if (word == "waiting" || word == "pending") return std::vector<std::string>{"queued"};
  for (const auto* state :
       {"queued", "starting", "running", "stopping", "finished", "failed", "killed", "lost"})
    if (word == state) return std::vector<std::string>{word};
  return fail(
      ErrorKind::kInvalid, fmt::format("--state: there is no state '{}'", word),
      "there are queued, starting, running, stopping, finished, failed, killed and lost, and 'ended' for "
      "the last four");
}

/// What the words on the command line mean; who asks for what has ended need not add --all.
Result<PsOptions> understood(PsOptions options) {
  std::vector<std::string> states;
  for (const auto& word : options.filter.states) {
    DROVER_TRY(const auto meant, states_of(word));
    states.insert(states.end(), meant.begin(), meant.end());
    options.all = options.all || is_final_state(meant.front());
  }
  options.filter.states = std::move(states);
  if (!options.since.empty()) {
    DROVER_TRY(options.filter.since, of_flag(parse_since(options.since, wall_clock()), "--since"));
  }
  options.all = options.all || options.newest > 0;
  return options;
}

Result<std::vector<json>> chosen(const Client& client, const PsOptions& options) {
  const auto which = fmt::format("/v1/tasks?active={}&summary={}", !options.all, !options.json);
  std::vector<json> records;
  const auto take = [&](const json& record) {
    if (options.filter.takes(record)) records.push_back(record);
  };
  DROVER_CHECK_OK(client.get_items(which, "tasks", take));
  if (!options.sort.empty()) DROVER_CHECK_OK(sort_records(records, options.sort));
  if (options.newest > 0 && records.size() > options.newest)
    records.erase(records.begin(), records.end() - static_cast<std::ptrdiff_t>(options.newest));
  return records;
}

Result<std::string> list(const Client& client, const PsOptions& options) {
  DROVER_TRY(const auto records, chosen(client, options));
  std::string text;
  if (options.quiet) {
    for (const auto& record : records) text += record.at("task").value("id", "") + "\n";
    return text;
  }
  auto columns = task_columns();
  if (!options.format.empty()) {
    DROVER_TRY(const auto format, ListFormat::parse(options.format));
    columns = format.names();
    DROVER_CHECK_OK(of_flag(check_columns(columns), "--format"));
  }
  DROVER_TRY(const auto gpus, client.get("/v1/gpus"));
  const KnownGpus known(gpus);
  const TaskRows rows(columns, known, wall_clock());
  Table table(rows.header(gpus.value("simulated", false)));
  for (const auto& record : with_waiting_arrays_joined(records)) table.add(rows.row(record));
  if (options.all && ::isatty(STDERR_FILENO) == 1) {
    DROVER_TRY(const auto nodes, client.get("/v1/nodes"));
    if (const auto note = note_of_removals(records, time_of_keeping(nodes), wall_clock()); !note.empty())
      report(note);
  }
  return shown(table, options);
}

Result<int> ps(Context& context, const PsOptions& given) {
  DROVER_TRY(const auto options, understood(given));
  const auto client = context.client();
  if (options.json) {
    DROVER_TRY(const auto records, chosen(client, options));
    print_json({{"tasks", records}});
    return 0;
  }
  constexpr std::string_view kClear = "\033[H\033[2J\033[3J";
  while (true) {
    DROVER_TRY(const auto text, list(client, options));
    print(options.watch && ::isatty(STDOUT_FILENO) == 1 ? std::string(kClear) + text : text);
    if (!options.watch) return 0;
    std::this_thread::sleep_for(kBetweenLooks);
  }
}

CLI::Option* add_words(CLI::App* command, const char* name, std::vector<std::string>& words, const char* type,
                       const char* help) {
  return command->add_option(name, words, help)->type_name(type)->delimiter(',')->allow_extra_args(false);
}

}  // namespace

void add_ps(CLI::App& app, Context& context) {
  auto options = std::make_shared<PsOptions>();
  auto* command = app.add_subcommand("ps", "List tasks: those that wait or run, or all");
  auto& filter = options->filter;
  command->add_flag("--all,-a", options->all, "Also those that have ended");
  add_words(command, "--state", filter.states, "STATE",
            "Only in this state: running, queued, failed, ended …");
  add_words(command, "--user", filter.users, "USER", "Only of this user");
  add_words(command, "--queue", filter.queues, "PATH", "Only in this queue, or below it");
  add_words(command, "--label", filter.labels, "NAME[=VALUE]", "Only with this label");
  command->add_option("--name", filter.name, "Only of this name; * stands for any text")->type_name("NAME");
  command->add_option("--since", options->since, "Only accepted since: 2h, or a time")->type_name("TIME");
  command->add_option("--newest,-n", options->newest, "Only the N that came last, ended ones too")
      ->type_name("N")
      ->check(CLI::Range(1, 1'000'000));
  command->add_option("--sort", options->sort, "By this column; with '-' in front the largest first")
      ->type_name("COLUMN");
  command->add_flag("--quiet,-q", options->quiet, "Only ids");
  command->add_flag("--watch,-w", options->watch, "Again every two seconds, until Ctrl-C");
  add_list_flags(*command, *options);
  on_call(command, context, options, ps);
}

}  // namespace drover::cli
