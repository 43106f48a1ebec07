// `drover submit`: a script that says itself what it needs.

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "cli/batch_flags.h"
#include "cli/commands/commands.h"
#include "cli/line.h"
#include "cli/script.h"
#include "cli/task_flags.h"
#include "cli/usage.h"
#include "cli/whereabouts.h"
#include "cli/words.h"

namespace drover::cli {
namespace {

using nlohmann::json;

constexpr std::size_t kMostBytes = 16 << 20;

struct SubmitOptions {
  TaskFlags flags;
  BatchFlags batch;
  bool json = false;
};

/// What the flags of one line ask for.
Result<json> read_directive(const std::vector<std::string>& words) {
  CLI::App program("", "drover");
  auto* command = program.add_subcommand("run");
  SubmitOptions options;
  add_task_flags(*command, options.flags);
  add_batch_flags(*command, options.batch);
  std::vector<std::string> whole = {"run"};
  whole.insert(whole.end(), words.begin(), words.end());
  DROVER_TRY(const auto line, read_line(program, whole));
  if (!line.command_to_run().empty())
    return fail(ErrorKind::kInvalid, fmt::format("'{}' is no flag", line.command_to_run().front()),
                "what is to run stands in the script itself");
  try {
    program.parse(std::vector<std::string>(line.arguments().rbegin(), line.arguments().rend()));
  } catch (const CLI::ParseError& error) {
    return Failure(usage_error(program, error));
  }
  DROVER_TRY(auto body, task_request(options.flags, {}));
  DROVER_CHECK_OK(add_batch(options.batch, body));
  return body;
}

Result<json> read_directives(const Script& script, const std::string& path) {
  json body = json::object();
  for (const auto& [line, words] : script.directives) {
    const auto said = read_directive(words);
    if (!said) return Failure(context(said.error(), fmt::format("{}:{}", path, line)));
    body.merge_patch(*said);
  }
  return body;
}

Result<json> request_of(const SubmitOptions& options, const std::vector<std::string>& words) {
  if (words.empty())
    return fail(ErrorKind::kInvalid, "Which script is not said", "write for example: drover submit train.sh");
  const auto& path = words.front();
  const auto text = read_file(path, kMostBytes);
  if (!text)
    return Failure(context({text.error().kind, text.error().message,
                            fmt::format("a command and no script? drover run --detach -- {}", path), ""},
                           path));
  const auto script = parse_script(*text);
  if (!script) return Failure(context(script.error(), path));
  if (script->has_foreign_directives)
    report(fmt::format("{}: what it asks another system for is not read; write lines like #DROVER --gpus 2",
                       path));
  DROVER_TRY(auto body, read_directives(*script, path));
  DROVER_TRY(const auto said, task_request(options.flags, {}));
  body.merge_patch(said);
  DROVER_CHECK_OK(add_batch(options.batch, body));
  if (!body.contains("name")) body["name"] = std::filesystem::path(path).filename().string();
  body["command"] = command_of(*script, *text, std::filesystem::absolute(path).lexically_normal().string(),
                               {words.begin() + 1, words.end()});
  return body;
}

Result<int> submit(Context& context, const SubmitOptions& options) {
  DROVER_TRY(auto request, request_of(options, context.command));
  const auto client = context.client();
  auto flags = options.flags;
  flags.user = request.value("user", "");
  const auto body = start_here(client, context.endpoint, flags, std::move(request));
  if (!body) return Failure(in_flags(body.error()));
  const auto answer = client.post("/v1/tasks", *body);
  if (!answer) return Failure(in_flags(answer.error()));
  if (options.json)
    print_json(*answer);
  else
    print(submitted_id(*answer) + "\n");
  return 0;
}

}  // namespace

void add_submit(CLI::App& app, Context& context) {
  auto* command =
      app.add_subcommand("submit", "Run a script in the background, as the lines at its head say");
  auto options = std::make_shared<SubmitOptions>();
  add_task_flags(*command, options->flags);
  add_batch_flags(*command, options->batch);
  command->add_flag("--json", options->json, "Print the task's record as JSON");
  command->get_option("command")->description("The script, and its arguments");
  command->footer(
      "Lines like '#DROVER --gpus 2 --mem 16GiB' at the head of the script are flags of this command; those "
      "on "
      "the command line go before. Prints the id by which 'drover logs' and the others know it.");
  on_call(command, context, options, submit);
}

}  // namespace drover::cli
