#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>
#include <tuple>

#include "cli/commands/commands.h"
#include "cli/foreground.h"
#include "cli/interrupts.h"
#include "cli/missing_command.h"
#include "cli/task_flags.h"
#include "cli/whereabouts.h"

namespace drover::cli {
namespace {

using nlohmann::json;

/// Each member that is followed takes a connection, of which one user has only so many.
constexpr std::size_t kMostFollowed = 128;

constexpr std::chrono::milliseconds kHangupTravels{200};

struct RunOptions {
  TaskFlags flags;
  bool detach = false;
  bool json = false;
};

/// The record of the member by whose end the gang is judged: the one that failed first by itself, else the
/// first.
std::size_t deciding_member(const std::vector<json>& records) {
  const auto rank_of_end = [](const json& record) {
    const bool failed = record.value("state", "") != "finished";
    const bool dragged = !record.value("gang_reason", "").empty();
    return std::tuple(!failed, dragged, record.value("finished_at", ""));
  };
  std::size_t decides = 0;
  for (std::size_t i = 1; i < records.size(); ++i)
    if (rank_of_end(records[i]) < rank_of_end(records[decides])) decides = i;
  return decides;
}

/// What the process exits with once all have ended; says what the tasks themselves could not.
int judge_end(const std::vector<json>& records, int signal) {
  const auto decides = deciding_member(records);
  const auto& record = records[decides];
  const bool alone = records.size() == 1;
  const auto status = record.find("exit_status");
  const auto state = record.value("state", "");
  const auto reason = record.value("reason", "");
  const bool has_status = status != record.end() && status->is_number_integer();
  const bool said_by_status = alone && has_status && reason.starts_with("exited with status");
  const auto verb = state == "failed" ? "failed" : "was " + state;
  const auto who = alone ? "the task" : fmt::format("rank {}", decides);
  if (!reason.empty() && !said_by_status)
    report_error({ErrorKind::kUnavailable, fmt::format("{} {}: {}", who, verb, reason),
                  missing_command_hint(record), ""});
  if (has_status) return status->get<int>();
  return signal != 0 ? 128 + signal : kNotRun;
}

/// Refusals of a wrong request keep their own exit status; everything else that keeps a task from running is
/// kNotRun, so that scripts can tell it from what the task itself returned.
Result<int> not_run(const Error& error) {
  if (error.kind == ErrorKind::kInvalid) return Failure(in_flags(error));
  report_error(in_flags(error));
  return kNotRun;
}

/// The records of what was submitted: one, or those of a gang by rank.
std::vector<json> records_in(const json& answer) {
  if (!answer.contains("tasks")) return {answer};
  return answer.at("tasks").get<std::vector<json>>();
}

Result<json> request_of(const RunOptions& options, const std::vector<std::string>& rest) {
  DROVER_TRY(auto body, task_request(options.flags, rest));
  if (!body.contains("command") && !body.contains("image"))
    return fail(ErrorKind::kInvalid, "There is nothing to run: neither a command nor an image",
                "write for example: drover run --gpus 1 -- nvidia-smi");
  const auto size = body.value("gang", json::object()).value("size", std::int64_t{0});
  if (!options.detach && size > static_cast<std::int64_t>(kMostFollowed))
    return fail(ErrorKind::kInvalid,
                fmt::format("--gang: the output of {} tasks cannot be followed at once", size),
                "add --detach, and read it with 'drover logs'");
  return body;
}

Result<int> run(Context& context, const RunOptions& options) {
  DROVER_TRY(auto request, request_of(options, context.command));
  const auto client = context.client();
  const auto body = start_here(client, context.endpoint, options.flags, std::move(request));
  if (!body) return not_run(body.error());
  const auto answer = client.post("/v1/tasks", *body);
  if (!answer) return not_run(answer.error());
  std::vector<std::string> ids;
  for (const auto& record : records_in(*answer)) ids.push_back(record.at("task").value("id", ""));
  if (options.detach) {
    if (options.json) print_json(*answer);
    for (const auto& id : ids)
      if (!options.json) print(id + "\n");
    return 0;
  }
  ::signal(SIGPIPE, SIG_IGN);
  // With --json standard output is the record's alone.
  Foreground foreground(client, ids, options.json ? STDERR_FILENO : STDOUT_FILENO);
  const Interrupts interrupts([&](int signal) { foreground.interrupt(signal); });
  const auto ends = foreground.follow();
  if (!ends) return not_run(ends.error());
  if (foreground.line_is_lost()) return 128 + SIGHUP;
  if (foreground.output_is_closed()) {
    // A pipe breaks too when the line is lost to all that stand in it: then SIGHUP is on its way.
    std::this_thread::sleep_for(kHangupTravels);
    foreground.stop(false);
    return 128 + SIGPIPE;
  }
  if (ends->empty()) return 128 + foreground.last_signal();
  const int status = judge_end(*ends, foreground.last_signal());
  if (options.json) print_json(ids.size() == 1 ? ends->front() : json{{"tasks", *ends}});
  return status;
}

}  // namespace

void add_run(CLI::App& app, Context& context) {
  auto* command = app.add_subcommand("run", "Run a command, or an image, as a task");
  auto options = std::make_shared<RunOptions>();
  add_task_flags(*command, options->flags);
  command->add_flag("--detach,-d", options->detach, "Print the task's id and leave it running");
  command->add_flag("--json", options->json,
                    "Print the task's record as JSON; what the task writes goes to standard error");
  command->footer("Write the command after '--': drover run --gpus 1 -- nvidia-smi -L");
  on_call(command, context, options, run);
}

}  // namespace drover::cli
