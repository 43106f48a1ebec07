#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/files.h"
#include "base/units.h"
#include "cli/commands/commands.h"
#include "cli/follow.h"
#include "cli/interrupts.h"

namespace drover::cli {
namespace {

using nlohmann::json;

/// Drover, and not the task, is why there is no better exit status.
constexpr int kNotRun = 125;

struct RunOptions {
  std::string gpus, cpus, memory, image, user, working_directory, name, timeout, grace;
  std::vector<std::string> environment;
  std::vector<std::string> labels;
  std::vector<std::string> words;  ///< of the command, before "--" or without it
  bool read_only = false;
  bool detach = false;
  bool json = false;
};

/// Names the flag that an error is about.
template <typename T>
Result<T> of_flag(Result<T> result, std::string_view flag) {
  if (!result) return Failure(context(result.error(), flag));
  return result;
}

Result<int> parse_gpus(const std::string& text) {
  int count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error == std::errc() && end == text.data() + text.size() && count >= 0) return count;
  double fraction = 0;
  const auto number = std::from_chars(text.data(), text.data() + text.size(), fraction);
  if (number.ec == std::errc() && number.ptr == text.data() + text.size() && fraction > 0)
    return fail(ErrorKind::kInvalid, fmt::format("--gpus: a part of a GPU ({}) cannot be given", text),
                "ask for a whole number of GPUs; sharing one GPU is not available yet");
  return fail(ErrorKind::kInvalid, fmt::format("--gpus: '{}' is not a number of GPUs", text),
              "write for example --gpus 2");
}

/// "K=V"; with `inherit`, "K" alone stands for this process's own value.
Result<json> parse_pairs(const std::vector<std::string>& pairs, std::string_view flag, bool inherit) {
  json result = json::object();
  for (const auto& pair : pairs) {
    const auto equals = pair.find('=');
    const auto name = pair.substr(0, equals);
    const char* own = equals == std::string::npos && inherit ? std::getenv(name.c_str()) : nullptr;
    if (name.empty() || (equals == std::string::npos && !inherit))
      return fail(ErrorKind::kInvalid, fmt::format("{}: '{}' is not of the form NAME=VALUE", flag, pair));
    if (equals != std::string::npos)
      result[name] = pair.substr(equals + 1);
    else if (own != nullptr)
      result[name] = own;
  }
  return result;
}

/// The daemon has another working directory: it gets paths in full.
std::string absolute_image(const std::string& reference) {
  for (const std::string_view scheme : {"oci:", "docker-archive:", "rootfs:"})
    if (reference.starts_with(scheme))
      return std::string(scheme) +
             std::filesystem::absolute(reference.substr(scheme.size())).lexically_normal().string();
  // A word that is no file here may be the name of an image in a registry: the daemon says what it makes of
  // it.
  const bool is_path = reference.starts_with('/') || reference.starts_with('.') ||
                       std::filesystem::exists(reference.substr(0, reference.find(':')));
  return is_path ? std::filesystem::absolute(reference).lexically_normal().string() : reference;
}

Status add_sizes(const RunOptions& options, json& body) {
  if (!options.gpus.empty()) {
    DROVER_TRY(body["gpus"], parse_gpus(options.gpus));
  }
  if (!options.cpus.empty()) {
    DROVER_TRY(const auto milli_cpus, of_flag(parse_milli_cpus(options.cpus), "--cpus"));
    body["cpus"] = static_cast<double>(milli_cpus) / 1000;
  }
  if (!options.memory.empty()) {
    DROVER_TRY(body["memory"], of_flag(parse_bytes(options.memory), "--mem"));
  }
  const std::array<std::pair<const char*, const std::string*>, 2> durations = {
      {{"timeout", &options.timeout}, {"grace", &options.grace}}};
  for (const auto& [name, text] : durations) {
    if (text->empty()) continue;
    DROVER_CHECK_OK(of_flag(parse_duration(*text), fmt::format("--{}", name)).map([](auto) {}));
    body[name] = *text;
  }
  return {};
}

Result<json> task_request(const RunOptions& options, const std::vector<std::string>& command) {
  json body = json::object();
  if (command.empty() && options.image.empty())
    return fail(ErrorKind::kInvalid, "There is nothing to run: neither a command nor an image",
                "write for example: drover run --gpus 1 -- nvidia-smi");
  DROVER_CHECK_OK(add_sizes(options, body));
  DROVER_TRY(body["env"], parse_pairs(options.environment, "--env", true));
  DROVER_TRY(body["labels"], parse_pairs(options.labels, "--label", false));
  if (!command.empty()) body["command"] = command;
  if (!options.image.empty()) body["image"] = absolute_image(options.image);
  if (!options.user.empty()) body["user"] = options.user;
  if (!options.working_directory.empty()) body["working_directory"] = options.working_directory;
  if (!options.name.empty()) body["name"] = options.name;
  if (options.read_only) body["read_only"] = true;
  return body;
}

/// One task in the foreground: its output is ours, its end is ours, and Ctrl-C is for it.
class Foreground {
 public:
  Foreground(Client client, std::string id) : client_(std::move(client)), id_(std::move(id)) {}

  Result<json> follow() {
    FollowHandlers handlers;
    handlers.output = [this](std::string_view stream, std::string_view bytes) {
      return pass_on(stream, bytes);
    };
    handlers.state = [this](const json& record) { tell_why_it_waits(record); };
    handlers.give_up = [this] { return given_up_.load(); };
    return follow_task(client_, id_, {}, handlers);
  }

  /// The first asks, the second kills. Called on the thread of Interrupts.
  void interrupt(int signal) {
    const bool force = last_signal_.exchange(signal) != 0;
    tell(force ? "killing the task" : "asking the task to stop; once more kills it");
    stop(force);
  }

  void stop(bool force) {
    const auto stopped = client_.post(task_target(id_, "/stop"), {{"force", force}});
    if (stopped || stopped.error().kind == ErrorKind::kConflict) return;
    tell_error(stopped.error());
    if (force) given_up_ = true;
  }

  int last_signal() const { return last_signal_; }
  bool output_is_closed() const { return output_is_closed_; }

 private:
  bool pass_on(std::string_view stream, std::string_view bytes) {
    const int fd = stream == "stderr" ? STDERR_FILENO : STDOUT_FILENO;
    output_is_closed_ = !write_all(fd, bytes, std::string(stream)).has_value();
    return !output_is_closed_;
  }

  void tell_why_it_waits(const json& record) {
    if (record.value("state", "") != "queued") return;
    const auto explained = client_.get(task_target(id_, "/explain"));
    if (!explained || explained->value("state", "") != "queued") return;
    std::string why;
    for (const auto& reason : explained->value("reasons", json::array()))
      why += (why.empty() ? "" : "; ") + reason.get<std::string>();
    if (why.empty() || why == last_why_) return;
    last_why_ = why;
    tell("waiting: " + why);
  }

  Client client_;
  std::string id_;
  std::atomic<int> last_signal_ = 0;
  std::atomic<bool> given_up_ = false;
  bool output_is_closed_ = false;
  std::string last_why_;
};

/// What the process exits with once the task has ended; says what the task itself could not.
int judge_end(const json& record, int signal) {
  const auto status = record.find("exit_status");
  const auto state = record.value("state", "");
  const auto reason = record.value("reason", "");
  const bool has_status = status != record.end() && status->is_number_integer();
  const bool said_by_status = has_status && reason.starts_with("exited with status");
  const auto verb = state == "failed" ? "failed" : "was " + state;
  if (!reason.empty() && !said_by_status) tell(fmt::format("the task {}: {}", verb, reason));
  if (has_status) return status->get<int>();
  return signal != 0 ? 128 + signal : kNotRun;
}

/// Refusals of a wrong request keep their own exit status; everything else that keeps a task from running is
/// kNotRun, so that scripts can tell it from what the task itself returned.
Result<int> not_run(const Error& error) {
  if (error.kind == ErrorKind::kInvalid) return Failure(error);
  tell_error(error);
  return kNotRun;
}

Result<int> run(Context& context, const RunOptions& options) {
  auto command = options.words;
  command.insert(command.end(), context.command.begin(), context.command.end());
  DROVER_TRY(const auto body, task_request(options, command));
  const auto client = context.client();
  const auto record = client.post("/v1/tasks", body);
  if (!record) return not_run(record.error());
  const auto id = record->at("task").value("id", "");
  if (options.detach) {
    if (options.json)
      print_json(*record);
    else
      print(id + "\n");
    return 0;
  }
  ::signal(SIGPIPE, SIG_IGN);
  Foreground foreground(client, id);
  const Interrupts interrupts([&](int signal) { foreground.interrupt(signal); });
  const auto end = foreground.follow();
  if (!end) return not_run(end.error());
  if (foreground.output_is_closed()) {
    foreground.stop(false);
    return 128 + SIGPIPE;
  }
  if (end->is_null()) return 128 + foreground.last_signal();
  const int status = judge_end(*end, foreground.last_signal());
  if (options.json) print_json(*end);
  return status;
}

}  // namespace

void add_run(CLI::App& app, Context& context) {
  auto* command = app.add_subcommand("run", "Run a command, or an image, as a task");
  auto options = std::make_shared<RunOptions>();
  command->add_option("--gpus", options->gpus, "Whole GPUs to give to the task")->type_name("N");
  command->add_option("--cpus", options->cpus, "CPUs, also in parts: 0.5")->type_name("X");
  command->add_option("--mem", options->memory, "Memory limit: 512M, 16GiB")->type_name("SIZE");
  command
      ->add_option("--image", options->image,
                   "oci:LAYOUT[:TAG], docker-archive:FILE, rootfs:FOLDER or a path")
      ->type_name("REF");
  command->add_option("--env,-e", options->environment, "Set a variable; NAME alone passes on its value here")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  command->add_option("--user", options->user, "Whom it runs as; only root may name another user")
      ->type_name("USER");
  command->add_option("--workdir", options->working_directory, "Folder in which it starts")->type_name("DIR");
  command->add_flag("--read-only", options->read_only, "Make the root file system read-only");
  command->add_option("--name", options->name, "A name for people")->type_name("NAME");
  command->add_option("--timeout", options->timeout, "Stop it after this time: 90s, 2h")->type_name("TIME");
  command->add_option("--grace", options->grace, "Time between asking it to stop and killing it")
      ->type_name("TIME");
  command->add_option("--label", options->labels, "Attach a label")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  command->add_flag("--detach,-d", options->detach, "Print the task's id and leave it running");
  command->add_flag("--json", options->json, "Print the task's record as JSON");
  command->add_option("command", options->words, "What to run; after '--' if it has flags of its own")
      ->type_name("COMMAND");
  command->footer("Write the command after '--': drover run --gpus 1 -- nvidia-smi -L");
  on_call(command, context, options, run);
}

}  // namespace drover::cli
