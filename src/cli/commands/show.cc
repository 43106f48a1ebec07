// `drover show`: all that people want to know of a task, in words.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "base/units.h"
#include "cli/commands/commands.h"
#include "cli/printable.h"
#include "cli/task_rows.h"
#include "cli/use_words.h"

namespace drover::cli {
namespace {

using nlohmann::json;

struct ShowTaskOptions {
  std::string task;
  bool json = false;
};

/// Lines of "name   value", without those that have none.
class Page {
 public:
  void add(const char* name, const std::string& value) {
    if (!value.empty()) text_ += fmt::format("{:<13}{}\n", name, printable(value));
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

std::string joined(const json& list, const char* between) {
  std::vector<std::string> words;
  for (const auto& word : list) words.push_back(word.is_string() ? word.get<std::string>() : word.dump());
  return fmt::format("{}", fmt::join(words, between));
}

std::string pairs(const json& object) {
  std::vector<std::string> words;
  for (const auto& [name, value] : object.items()) words.push_back(name + "=" + value.get<std::string>());
  return fmt::format("{}", fmt::join(words, " "));
}

/// "2026-11-23T10:00:00Z, 3m ago"
std::string moment(const std::string& time, TimePoint now) {
  const auto then = parse_time(time);
  if (!then) return "";
  return fmt::format("{}, {} ago", time,
                     format_duration(std::max(now - *then, std::chrono::milliseconds(0))));
}

std::string gpus_of(const json& record, const KnownGpus& known) {
  const auto& task = record.at("task");
  const auto grants = record.value("grants", json::array());
  if (grants.empty()) return wanted(task) == "-" ? "none" : "wants " + wanted(task);
  return fmt::format("{}{} ({})", granted(grants, task.value("gpu_share", json()), known), mps_words(task),
                     known.model(grants.front().value("gpu", "")));
}

std::string most_time(const json& task, const char* field, const char* what) {
  if (!task.contains(field)) return "";
  return fmt::format("{} {}", exact_duration(std::chrono::milliseconds(task.at(field).get<std::int64_t>())),
                     what);
}

/// When it is forgotten, with its sandbox: "2026-11-30T10:00:00.000Z, in 6d 2h".
std::string end_of_keeping(const json& record, const json& nodes, TimePoint now) {
  const auto until = kept_until(record, time_of_keeping(nodes));
  if (!until) return "";
  return fmt::format("{}, in {}", format_time(*until),
                     format_duration(std::max(*until - now, std::chrono::milliseconds(0))));
}

std::string page_of(const json& record, const KnownGpus& known, const json& nodes, TimePoint now) {
  const auto& task = record.at("task");
  Page page;
  page.add("task", task.value("id", ""));
  page.add("name", name_of_task(task));
  page.add("state", record.value("state", ""));
  page.add("because", record.value("reason", ""));
  if (record.contains("exit_status")) page.add("exit status", record.at("exit_status").dump());
  page.add("user", task.at("user").value("name", ""));
  page.add("queue", queue_of_task(task));
  page.add("namespace", task.value("namespace", ""));
  page.add("command", joined(task.value("command", json::array()), " "));
  page.add("image", task.value("image", ""));
  page.add("folder", task.value("working_directory", ""));
  page.add("GPUs", gpus_of(record, known));
  page.add("CPUs", fmt::format("{:g}", task.value("cpus", 0.0)));
  page.add("memory", format_bytes(task.value("memory", std::uint64_t{0})));
  page.add("runs for", most_time(task, "timeout_ms", "at most"));
  page.add("idle for", most_time(task, "idle_timeout_ms", "at most, then it is stopped"));
  page.add("ports", joined(record.value("ports", json::array()), ", "));
  page.add("labels", pairs(task.value("labels", json::object())));
  page.add("accepted", moment(record.value("submitted_at", ""), now));
  page.add("started", moment(record.value("started_at", ""), now));
  page.add("ended", moment(record.value("finished_at", ""), now));
  if (const auto time = run_time(record, now); time != "-") page.add("ran for", time);
  for (const auto& [name, words] : words_of_use(record.value("use", json::object()))) page.add(name, words);
  page.add("kept until", end_of_keeping(record, nodes, now));
  return page.text();
}

Result<int> show(Context& context, const ShowTaskOptions& options) {
  const auto client = context.client();
  DROVER_TRY(const auto record, client.get(task_target(options.task)));
  if (options.json) {
    print_json(record);
    return 0;
  }
  DROVER_TRY(const auto gpus, client.get("/v1/gpus"));
  DROVER_TRY(const auto nodes, client.get("/v1/nodes"));
  print(page_of(record, KnownGpus(gpus), nodes, wall_clock()));
  return 0;
}

}  // namespace

void add_show(CLI::App& app, Context& context) {
  auto options = std::make_shared<ShowTaskOptions>();
  auto* command = app.add_subcommand("show", "Show a task: what it is, has and does, and how it ended");
  command->add_option("task", options->task, "Id, the beginning of an id, or name")
      ->required()
      ->type_name("TASK");
  command->add_flag("--json", options->json, "Print JSON");
  on_call(command, context, options, show);
}

}  // namespace drover::cli
