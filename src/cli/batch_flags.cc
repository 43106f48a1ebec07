#include "cli/batch_flags.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/flags.h"
#include "cli/moments.h"

namespace drover::cli {

using nlohmann::json;

void add_batch_flags(CLI::App& command, BatchFlags& flags) {
  const auto group = [](CLI::Option* option) { option->group("Batch"); };
  group(add_text(command, "--array", flags.array, "0-99%10",
                 "A task for each number, here ten at a time; $DROVER_ARRAY_INDEX says which"));
  group(add_list(command, "--after", flags.after, "TASK[:ok|failed|any]",
                 "Start after this task, gang or array, when it ended so; ok when not given"));
  group(add_text(command, "--begin", flags.begin, "TIME",
                 "Do not start before: 2h, 18:00, tomorrow, 2026-11-27T18:00"));
  group(add_text(command, "--retries", flags.retries, "N",
                 "Start it again when it fails, so often; never when not given"));
  group(command.add_flag("--requeue", flags.requeue, "Start it again also when the machine went down"));
  group(command.add_flag("--no-requeue", flags.no_requeue, "Do not start it again, not even when preempted"));
}

Status add_batch(const BatchFlags& flags, json& body) {
  if (!flags.array.empty()) body["array"] = flags.array;
  if (!flags.after.empty()) body["after"] = flags.after;
  if (!flags.begin.empty()) {
    DROVER_TRY(const auto time, of_flag(parse_begin(flags.begin, wall_clock()), "--begin"));
    body["begin"] = format_time(time);
  }
  if (!flags.retries.empty()) {
    DROVER_TRY(body["retries"], parse_whole(flags.retries, "--retries"));
  }
  if (flags.requeue && flags.no_requeue)
    return fail(ErrorKind::kInvalid, "--requeue and --no-requeue exclude each other", "leave one out");
  if (flags.requeue) body["requeue"] = "lost";
  if (flags.no_requeue) body["requeue"] = "never";
  return {};
}

}  // namespace drover::cli
