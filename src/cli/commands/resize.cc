// `drover resize`: another share of its GPUs for a task that runs.

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/commands/commands.h"
#include "cli/flags.h"
#include "cli/task_flags.h"
#include "cli/words.h"

namespace drover::cli {
namespace {

using nlohmann::json;

struct ResizeOptions {
  std::string task;
  std::string share;
  bool json = false;
};

Result<int> resize(Context& context, const ResizeOptions& options) {
  const auto client = context.client();
  const auto answer = client.patch(task_target(options.task), {{"gpu_share", share_of_flag(options.share)}});
  if (!answer) return Failure(in_flags(answer.error()));
  const auto& record = *answer;
  if (options.json) {
    print_json(record);
    return 0;
  }
  DROVER_TRY(const auto gpus, client.get("/v1/gpus"));
  const auto& task = record.at("task");
  print(fmt::format(
      "Task {} has {}\n", task.value("id", ""),
      granted(record.value("grants", json::array()), task.value("gpu_share", json()), KnownGpus(gpus))));
  return 0;
}

}  // namespace

void add_resize(CLI::App& app, Context& context) {
  auto options = std::make_shared<ResizeOptions>();
  auto* command = app.add_subcommand("resize", "Give a task that runs another share of its GPUs");
  command->add_option("task", options->task, "Id, the beginning of an id, or name")
      ->type_name("TASK")
      ->required();
  add_text(*command, "--gpu-share", options->share, "PART", "So much of each GPU: 0.5 or 8GiB")->required();
  command->add_flag("--json", options->json, "Print JSON");
  on_call(command, context, options, resize);
}

}  // namespace drover::cli
