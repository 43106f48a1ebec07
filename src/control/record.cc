#include "control/record.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>

#include "base/decode.h"

namespace drover::control {
namespace {

using nlohmann::json;

constexpr std::array<std::string_view, 8> kStates = {"queued",   "starting", "running", "stopping",
                                                     "finished", "failed",   "killed",  "lost"};

std::optional<TimePoint> decode_time(Decoder& decoder, const std::string& name) {
  const auto text = decoder.string(name);
  if (!text) return std::nullopt;
  const auto time = parse_time(*text);
  if (time) return *time;
  decoder.mistake(name, time.error().message);
  return std::nullopt;
}

}  // namespace

std::string_view to_string(TaskState state) {
  return kStates.at(static_cast<std::size_t>(state));
}

Result<TaskState> parse_task_state(std::string_view text) {
  for (std::size_t i = 0; i < kStates.size(); ++i)
    if (kStates[i] == text) return static_cast<TaskState>(i);
  return fail(ErrorKind::kInvalid, fmt::format("'{}' is not a task state", text));
}

json encode(const TaskRecord& record) {
  json value = {{"task", workload::encode(record.task)},
                {"sequence", record.sequence},
                {"state", to_string(record.state)},
                {"gpus", record.gpus},
                {"reason", record.reason},
                {"stop_requested", record.stop_requested},
                {"timed_out", record.timed_out},
                {"submitted_at", format_time(record.submitted_at)}};
  if (record.exit_status) value["exit_status"] = *record.exit_status;
  if (record.started_at) value["started_at"] = format_time(*record.started_at);
  if (record.finished_at) value["finished_at"] = format_time(*record.finished_at);
  return value;
}

Result<TaskRecord> decode_record(const json& value) {
  std::vector<Error> mistakes;
  Decoder decoder(value, mistakes);
  TaskRecord record;
  if (!value.is_object() || !value.contains("task")) {
    decoder.mistake("task", "missing");
    return Failure(join_mistakes(mistakes, "A stored task record"));
  }
  DROVER_TRY(record.task, workload::decode_task(value["task"]));
  DROVER_TRY(record.state, parse_task_state(decoder.string("state").value_or("")));
  record.sequence = static_cast<std::uint64_t>(decoder.integer("sequence", 0, 1LL << 53).value_or(0));
  record.gpus = decoder.string_list("gpus").value_or(std::vector<std::string>{});
  record.reason = decoder.string("reason").value_or("");
  record.stop_requested = decoder.boolean("stop_requested").value_or(false);
  record.timed_out = decoder.boolean("timed_out").value_or(false);
  if (const auto status = decoder.integer("exit_status", 0, 255))
    record.exit_status = static_cast<int>(*status);
  record.submitted_at = decode_time(decoder, "submitted_at").value_or(TimePoint{});
  record.started_at = decode_time(decoder, "started_at");
  record.finished_at = decode_time(decoder, "finished_at");
  if (!mistakes.empty()) return Failure(join_mistakes(mistakes, "A stored task record"));
  return record;
}

}  // namespace drover::control
