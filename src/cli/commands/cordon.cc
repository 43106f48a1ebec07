// `drover cordon`, `uncordon` and `drain`: GPUs, or the machine, out of use for new work.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/units.h"
#include "cli/commands/commands.h"
#include "cli/printable.h"
#include "cli/task_rows.h"

namespace drover::cli {
namespace {

using nlohmann::json;

constexpr std::chrono::milliseconds kDrainPoll{500};
constexpr const char* kMachine = "machine";

struct CordonOptions {
  std::vector<std::string> gpus;  ///< by index or UUID; empty: the machine
  bool machine = false;
  std::string reason;
  bool stop = false;
  std::string timeout;
};

/// What is meant, as the API names it: UUIDs of GPUs, or the machine. Nobody cordons a whole machine by
/// leaving a word out.
Result<std::vector<std::string>> targets_of(const Client& client, const CordonOptions& options) {
  if (options.gpus.empty() == !options.machine)
    return fail(ErrorKind::kInvalid,
                options.machine ? "The GPUs are part of the machine" : "It is not said what is meant",
                "name GPUs by their index or UUID, or write --machine");
  if (options.machine) return std::vector<std::string>{kMachine};
  DROVER_TRY(const auto listing, client.get("/v1/gpus"));
  std::vector<std::string> targets;
  for (const auto& name : options.gpus) {
    const auto is_it = [&](const json& gpu) {
      return gpu.value("uuid", "") == name || std::to_string(gpu.value("index", -1)) == name;
    };
    const auto& gpus = listing.at("gpus");
    const auto found = std::find_if(gpus.begin(), gpus.end(), is_it);
    if (found == gpus.end())
      return fail(ErrorKind::kNotFound, fmt::format("There is no GPU '{}'", name),
                  "'drover gpus' lists them");
    targets.push_back(found->value("uuid", ""));
  }
  return targets;
}

Status set_cordons(const Client& client, const std::vector<std::string>& targets, const std::string& reason) {
  for (const auto& target : targets)
    DROVER_CHECK_OK(
        client.put("/v1/cordons/" + percent_encode(target), {{"reason", reason}}).map([](auto) {}));
  return {};
}

/// The tasks that still run on what is meant.
Result<std::vector<json>> tasks_on(const Client& client, const std::vector<std::string>& targets) {
  std::vector<json> tasks;
  const auto take = [&](const json& record) {
    const auto grants = record.value("grants", json::array());
    const bool runs = record.value("state", "") != "queued";
    const auto is_meant = [&](const json& grant) {
      return std::ranges::find(targets, grant.value("gpu", "")) != targets.end();
    };
    if (runs && (targets.front() == kMachine || std::any_of(grants.begin(), grants.end(), is_meant)))
      tasks.push_back(record);
  };
  DROVER_CHECK_OK(client.get_items("/v1/tasks?active=true&summary=true", "tasks", take));
  return tasks;
}

Status print_tasks(const Client& client, const std::vector<json>& tasks) {
  if (tasks.empty()) return {};
  DROVER_TRY(const auto gpus, client.get("/v1/gpus"));
  const KnownGpus known(gpus);
  const TaskRows rows(task_columns(), known, wall_clock());
  Table table(rows.header(gpus.value("simulated", false)));
  for (const auto& task : tasks) table.add(rows.row(task));
  print("What still runs there:\n" + shown(table));
  return {};
}

Result<int> cordon(Context& context, const CordonOptions& options) {
  const auto client = context.client();
  DROVER_TRY(const auto targets, targets_of(client, options));
  DROVER_CHECK_OK(set_cordons(client, targets, options.reason));
  report("no new work goes there; 'drover uncordon' takes that back");
  DROVER_TRY(const auto tasks, tasks_on(client, targets));
  DROVER_CHECK_OK(print_tasks(client, tasks));
  return 0;
}

Result<int> uncordon(Context& context, const CordonOptions& options) {
  const auto client = context.client();
  DROVER_TRY(const auto targets, targets_of(client, options));
  int exit_status = 0;  // one that was not cordoned keeps no other from being freed
  for (const auto& target : targets) {
    const auto removed = client.remove("/v1/cordons/" + percent_encode(target));
    if (removed) continue;
    report_error(removed.error());
    exit_status = error_kind_info(removed.error().kind).exit_status;
  }
  if (exit_status == 0) report("new work goes there again");
  return exit_status;
}

Result<int> drain(Context& context, const CordonOptions& options) {
  std::chrono::milliseconds patience = std::chrono::hours(24 * 365);
  if (!options.timeout.empty()) {
    DROVER_TRY(patience, parse_duration(options.timeout));
  }
  const auto client = context.client();
  DROVER_TRY(const auto targets, targets_of(client, options));
  DROVER_CHECK_OK(set_cordons(client, targets, options.reason));
  DROVER_TRY(auto tasks, tasks_on(client, targets));
  DROVER_CHECK_OK(print_tasks(client, tasks));
  if (options.stop)
    for (const auto& task : tasks)
      DROVER_CHECK_OK(client.post(task_target(task.at("task").value("id", ""), "/stop"), json::object())
                          .map([](const json&) {}));
  const auto until = std::chrono::steady_clock::now() + patience;
  for (auto left = tasks.size(); left > 0; left = tasks.size()) {
    if (std::chrono::steady_clock::now() > until)
      return fail(ErrorKind::kTimeout,
                  fmt::format("{} still {} there", counted(static_cast<double>(left), "task"),
                              left == 1 ? "runs" : "run"),
                  "it stays cordoned; --stop asks what runs there to end");
    std::this_thread::sleep_for(kDrainPoll);
    DROVER_TRY(tasks, tasks_on(client, targets));
    if (tasks.size() != left)
      report(fmt::format("{} left", counted(static_cast<double>(tasks.size()), "task")));
  }
  report("nothing runs there, and no new work goes there; 'drover uncordon' takes that back");
  return 0;
}

CLI::App* add_for_gpus(CLI::App& app, Context& context, const char* name, const char* help,
                       Result<int> (*body)(Context&, const CordonOptions&),
                       const std::shared_ptr<CordonOptions>& options) {
  auto* command = app.add_subcommand(name, help);
  command->add_option("gpu", options->gpus, "Index or UUID of a GPU; several may be named")->type_name("GPU");
  command->add_flag("--machine", options->machine, "The whole machine, CPUs included");
  on_call(command, context, options, body);
  return command;
}

}  // namespace

void add_cordon(CLI::App& app, Context& context) {
  const auto with_reason = [](CLI::App* command, const std::shared_ptr<CordonOptions>& options) {
    command->add_option("--reason", options->reason, "For people who wait")->type_name("TEXT");
  };
  auto cordoning = std::make_shared<CordonOptions>();
  with_reason(add_for_gpus(app, context, "cordon", "Give GPUs, or the machine, no new work (root)", cordon,
                           cordoning),
              cordoning);
  add_for_gpus(app, context, "uncordon", "Give them new work again (root)", uncordon,
               std::make_shared<CordonOptions>());
  auto draining = std::make_shared<CordonOptions>();
  auto* command = add_for_gpus(app, context, "drain", "Cordon them, and wait until nothing runs there (root)",
                               drain, draining);
  with_reason(command, draining);
  command->add_flag("--stop", draining->stop, "Ask what runs there to end");
  command->add_option("--timeout", draining->timeout, "Wait so long at most: 30m")->type_name("TIME");
}

}  // namespace drover::cli
