#include <fmt/format.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <thread>

#include "cli/batch_flags.h"
#include "cli/commands/commands.h"
#include "cli/flags.h"
#include "cli/foreground.h"
#include "cli/input_sender.h"
#include "cli/interrupts.h"
#include "cli/task_flags.h"
#include "cli/whereabouts.h"
#include "workload/batch.h"

namespace drover::cli {
namespace {

using nlohmann::json;

/// Each member that is followed takes a connection, of which one user has only so many.
constexpr std::size_t kMostFollowed = 128;

constexpr std::chrono::milliseconds kHangupTravels{200};

struct RunOptions {
  TaskFlags flags;
  BatchFlags batch;
  bool detach = false;
  bool json = false;
  bool interactive = false;
  bool tty = false;
};

/// Refusals of a wrong request keep their own exit status; everything else that keeps a task from running is
/// kNotRun, so that scripts can tell it from what the task itself returned.
Result<int> not_run(const Error& error) {
  if (error.kind == ErrorKind::kInvalid) return Failure(in_flags(error));
  report_error(in_flags(error));
  return kNotRun;
}

/// The records of what was submitted: one, those of a gang by rank, or of an array by index.
std::vector<json> records_in(const json& answer) {
  if (!answer.contains("tasks")) return {answer};
  return answer.at("tasks").get<std::vector<json>>();
}

/// By which people go on: the id of an array, those of the members of a gang, or the task's.
std::vector<std::string> detached_ids(const json& answer, const std::vector<json>& records) {
  if (answer.contains("array")) return {submitted_id(answer)};
  std::vector<std::string> ids;
  for (const auto& record : records) ids.push_back(record.at("task").value("id", ""));
  return ids;
}

Status add_input(const RunOptions& options, json& body) {
  if (options.interactive || options.tty) body["stdin"] = true;
  if (!options.tty) return {};
  if (!options.detach && ::isatty(STDIN_FILENO) == 0)
    return fail(ErrorKind::kInvalid, "-t needs a terminal as standard input", "leave it out in scripts");
  body["tty"] = terminal_size();
  if (const char* term = std::getenv("TERM"); term != nullptr)
    if (auto& variables = body["env"]; !variables.contains("TERM")) variables["TERM"] = term;
  return {};
}

/// What is not detached is followed.
Status check_followed(const json& body) {
  const auto refuse = [](const char* flag, std::int64_t size) {
    return fail(ErrorKind::kInvalid,
                fmt::format("{}: the output of {} tasks cannot be followed at once", flag, size),
                "add --detach, and read it with 'drover logs'");
  };
  const auto size = body.value("gang", json::object()).value("size", std::int64_t{0});
  if (size > static_cast<std::int64_t>(kMostFollowed)) return refuse("--gang", size);
  if (!body.contains("array")) return {};
  DROVER_TRY(const auto array, of_flag(workload::parse_array(body["array"].get<std::string>()), "--array"));
  if (array.indices.size() > kMostFollowed)
    return refuse("--array", static_cast<std::int64_t>(array.indices.size()));
  return {};
}

Result<json> request_of(const RunOptions& options, const std::vector<std::string>& rest) {
  DROVER_TRY(auto body, task_request(options.flags, rest));
  DROVER_CHECK_OK(add_batch(options.batch, body));
  DROVER_CHECK_OK(add_input(options, body));
  for (const auto& name : unset_variables(options.flags))
    report(fmt::format("--env: '{}' is not set here, so the task does not get it", name));
  if (!body.contains("command") && !body.contains("image"))
    return fail(ErrorKind::kInvalid, "There is nothing to run: neither a command nor an image",
                "write for example: drover run --gpus 1 -- nvidia-smi");
  if (!options.detach) DROVER_CHECK_OK(check_followed(body));
  return body;
}

/// What was piped to us for a task that does not read it is not to vanish without a word.
void report_unread_input() {
  struct stat facts{};
  int waiting = 0;
  if (::fstat(STDIN_FILENO, &facts) == 0 && S_ISFIFO(facts.st_mode) &&
      ::ioctl(STDIN_FILENO, FIONREAD, &waiting) == 0 && waiting > 0)
    report("what came on standard input was not passed on; '-i' does that");
}

Result<int> run(Context& context, const RunOptions& options) {
  DROVER_TRY(auto request, request_of(options, context.command));
  const auto client = context.client();
  const auto body = start_here(client, context.endpoint, options.flags, std::move(request));
  if (!body) return not_run(body.error());
  const auto answer = client.post("/v1/tasks", *body);
  if (!answer) return not_run(answer.error());
  const auto records = records_in(*answer);
  if (options.detach) {
    if (options.json) print_json(*answer);
    for (const auto& id : detached_ids(*answer, records))
      if (!options.json) print(id + "\n");
    return 0;
  }
  ::signal(SIGPIPE, SIG_IGN);
  // With --json standard output is the record's alone.
  Foreground foreground(client, followed(records), options.json ? STDERR_FILENO : STDOUT_FILENO);
  const Interrupts interrupts([&](int signal) { foreground.interrupt(signal); });
  const auto ends = follow_with_input(client, foreground.first(), foreground,
                                      {.reads = options.interactive, .is_terminal = options.tty});
  if (!ends) return not_run(ends.error());
  if (foreground.line_is_lost()) return 128 + SIGHUP;
  if (foreground.output_is_closed()) {
    // A pipe breaks too when the line is lost to all that stand in it: then SIGHUP is on its way.
    std::this_thread::sleep_for(kHangupTravels);
    foreground.stop(false);
    return 128 + SIGPIPE;
  }
  if (ends->empty()) return 128 + foreground.last_signal();
  if (!options.interactive) report_unread_input();
  const int status = judge_end(*ends, foreground.last_signal());
  if (options.json) print_json(records.size() == 1 ? ends->front() : json{{"tasks", *ends}});
  return status;
}

}  // namespace

void add_run(CLI::App& app, Context& context) {
  auto* command = app.add_subcommand("run", "Run a command, or an image, as a task");
  auto options = std::make_shared<RunOptions>();
  add_task_flags(*command, options->flags);
  add_batch_flags(*command, options->batch);
  command->add_flag("--detach,-d", options->detach, "Print the task's id and leave it running");
  command->add_flag("--json", options->json,
                    "Print the task's record as JSON; what the task writes goes to standard error");
  command->add_flag("--interactive,-i", options->interactive, "Pass standard input on");
  command->add_flag("--tty,-t", options->tty, "Give it a terminal; Ctrl-P Ctrl-Q leaves it running");
  on_call(command, context, options, run);
}

}  // namespace drover::cli
