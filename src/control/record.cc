#include "control/record.h"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>

#include "base/decode.h"
#include "base/ids.h"
#include "base/json_writer.h"
#include "placement/request.h"
#include "workload/task_writer.h"

namespace drover::control {
namespace {

using nlohmann::json;

constexpr std::array<std::string_view, 8> kStates = {"queued",   "starting", "running", "stopping",
                                                     "finished", "failed",   "killed",  "lost"};

constexpr std::array<std::string_view, 8> kMesosStates = {"TASK_STAGING", "TASK_STARTING", "TASK_RUNNING",
                                                          "TASK_KILLING", "TASK_FINISHED", "TASK_FAILED",
                                                          "TASK_KILLED",  "TASK_LOST"};

constexpr std::array<std::string_view, 15> kCauses = {
    "none",      "exit",    "signal", "out_of_memory", "time_limit", "idle",        "disk", "share",
    "unhealthy", "stopped", "gang",   "preempted",     "dependency", "not_started", "lost"};

std::optional<TimePoint> decode_time(Decoder& decoder, const std::string& name) {
  const auto text = decoder.string(name);
  if (!text) return std::nullopt;
  const auto time = parse_time(*text);
  if (time) return *time;
  decoder.mistake(name, time.error().message);
  return std::nullopt;
}

void write_grants(JsonWriter& writer, const std::vector<placement::Grant>& grants, std::string_view tier) {
  writer.key("gpus");
  writer.begin_array();
  for (const auto& grant : grants) writer.value(grant.uuid);
  writer.end_array();
  writer.key("grants");
  write(writer, grants, tier);
}

void write_time(JsonWriter& writer, std::string_view name, const std::optional<TimePoint>& time) {
  if (time) writer.field(name, format_time(*time));
}

void write_text(JsonWriter& writer, std::string_view name, const std::string& text) {
  if (!text.empty()) writer.field(name, text);
}

std::vector<placement::Grant> decode_gpus(Decoder& decoder, const json& value) {
  std::vector<placement::Grant> grants;
  if (!value.contains("grants")) {
    for (auto& uuid : decoder.string_list("gpus").value_or(std::vector<std::string>{}))
      grants.push_back({std::move(uuid)});
    return grants;
  }
  for (auto& one : decoder.objects("grants")) {
    placement::Grant grant;
    grant.uuid = one.string("gpu").value_or("");
    grant.milli = static_cast<int>(one.integer("milli", 0, 1000).value_or(1000));
    grant.memory_bytes = static_cast<std::uint64_t>(one.integer("memory", 0, 1LL << 60).value_or(0));
    if (auto mig = one.object("mig")) {
      const auto number = [&](const char* name) {
        return static_cast<unsigned>(mig->integer(name, 0, 1 << 20).value_or(0));
      };
      grant.mig = placement::MigGrant{mig->string("profile").value_or(""),
                                      number("profile_id"),
                                      {number("start"), number("size")},
                                      mig->string("uuid").value_or("")};
    }
    grants.push_back(std::move(grant));
  }
  return grants;
}

/// Templates of so many bytes are kept apart: below, a row of their own costs more than it saves.
constexpr std::size_t kLargeTemplate = 4096;

// Older daemons do not take a record with these for one of a task that does nothing: they miss "task".
constexpr const char* kTemplateKey = "template";
constexpr const char* kOwnPart = "task_of_template";

std::vector<int> decode_numbers(Decoder& decoder, const json& value, const char* name) {
  std::vector<int> numbers;
  const auto field = value.find(name);
  if (field == value.end()) return numbers;
  for (const auto& number : *field) {
    if (!number.is_number_integer()) {
      decoder.mistake(name, "a list of numbers is expected");
      return numbers;
    }
    numbers.push_back(number.get<int>());
  }
  return numbers;
}

}  // namespace

std::vector<std::string> uuids_of(const TaskRecord& record) {
  std::vector<std::string> uuids;
  for (const auto& grant : record.gpus) uuids.push_back(grant.uuid);
  return uuids;
}

std::string_view to_string(TaskState state) {
  return kStates.at(static_cast<std::size_t>(state));
}

std::string_view to_string(Cause cause) {
  return kCauses.at(static_cast<std::size_t>(cause));
}

std::string_view mesos_state(TaskState state) {
  return kMesosStates.at(static_cast<std::size_t>(state));
}

Result<TaskState> parse_task_state(std::string_view text) {
  for (std::size_t i = 0; i < kStates.size(); ++i)
    if (kStates[i] == text) return static_cast<TaskState>(i);
  return fail(ErrorKind::kInvalid, fmt::format("'{}' is not a task state", text));
}

void write(JsonWriter& writer, const placement::MigGrant& mig) {
  writer.begin_object();
  writer.field("profile", mig.profile);
  writer.field("profile_id", mig.profile_id);
  writer.field("size", mig.placement.size);
  writer.field("start", mig.placement.start);
  write_text(writer, "uuid", mig.uuid);
  writer.end_object();
}

void write(JsonWriter& writer, const std::vector<placement::Grant>& grants, std::string_view tier) {
  writer.begin_array();
  for (const auto& grant : grants) {
    writer.begin_object();
    writer.field("gpu", grant.uuid);
    writer.field("memory", grant.memory_bytes);
    if (grant.mig) {
      writer.key("mig");
      write(writer, *grant.mig);
    }
    writer.field("milli", grant.milli);
    if (const auto told = placement::tier_of(grant, tier); !told.empty()) writer.field("tier", told);
    writer.end_object();
  }
  writer.end_array();
}

namespace {

void write_fields(JsonWriter& writer, const TaskRecord& record, const char* task_name) {
  write_text(writer, "address", record.address);
  if (record.asked) writer.field("asked", true);
  workload::write(writer, "awaits", record.awaits);
  if (record.cause != Cause::kNone) writer.field("cause", to_string(record.cause));
  write_text(writer, "containerizer", record.containerizer);
  writer.field("cpus", record.cpus);
  if (record.exit_status) writer.field("exit_status", *record.exit_status);
  if (record.failures > 0) writer.field("failures", record.failures);
  write_time(writer, "finished_at", record.finished_at);
  if (record.gang_port != 0) writer.field("gang_port", record.gang_port);
  write_text(writer, "gang_reason", record.gang_reason);
  write_grants(writer, record.gpus, record.tier);
  if (record.idled) writer.field("idled", true);
  writer.field("nics", record.nics);
  write_text(writer, "node", record.node);
  write_time(writer, "not_before", record.not_before);
  write_text(writer, "overdrawn", record.overdrawn);
  write_text(writer, "overran", record.overran);
  if (!record.ports.empty()) writer.field("ports", record.ports);
  writer.field("preempted", record.preempted);
  writer.field("preemptions", record.preemptions);
  writer.field("reason", record.reason);
  write_time(writer, "retry_at", record.retry_at);
  writer.field("sequence", record.sequence);
  if (record.set != 0) writer.field("set", record.set);
  if (record.shrunk_from != 0) writer.field("shrunk_from", record.shrunk_from);
  write_time(writer, "started_at", record.started_at);
  writer.field("state", to_string(record.state));
  write_time(writer, "steady_finished_at", record.steady_finished_at);
  write_time(writer, "steady_held_since", record.steady_held_since);
  write_time(writer, "steady_started_at", record.steady_started_at);
  write_text(writer, "stop_reason", record.stop_reason);
  writer.field("stop_requested", record.stop_requested);
  writer.field("submitted_at", format_time(record.submitted_at));
  writer.key(task_name);
  workload::write(writer, record.task);
  write_text(writer, "tier", record.tier);
  writer.field("timed_out", record.timed_out);
  if (record.tries_again) writer.field("tries_again", true);
  write_text(writer, "unhealthy", record.unhealthy);
  if (!record.use) return;
  writer.key("use");
  workload::write(writer, *record.use, record.gpus.empty() ? 0 : record.gpus.front().milli);
}

}  // namespace

void write(JsonWriter& writer, const TaskRecord& record) {
  writer.begin_object();
  write_fields(writer, record, "task");
  writer.end_object();
}

std::string text_of(const TaskRecord& record) {
  std::string text;
  JsonWriter writer(text);
  write(writer, record);
  return text;
}

std::string template_key_of(const workload::Task& task) {
  const auto text = workload::template_text(task);
  return text.size() < kLargeTemplate ? "" : sha256_hex(text);
}

std::string kept_text_of(const TaskRecord& record) {
  if (record.template_key.empty()) return text_of(record);
  auto own = record;
  workload::take_template(own.task, {});
  std::string text;
  JsonWriter writer(text);
  writer.begin_object();
  write_fields(writer, own, kOwnPart);
  writer.field(kTemplateKey, record.template_key);
  writer.end_object();
  return text;
}

Result<TaskRecord> decode_kept_record(const json& value, const Templates& templates) {
  if (!value.is_object() || !value.contains(kTemplateKey)) return decode_record(value);
  DROVER_TRY(const auto key, from_stored<std::string>(value[kTemplateKey], kTemplateKey));
  const auto found = templates.find(key);
  if (found == templates.end())
    return fail(ErrorKind::kCorrupt, fmt::format("Its template '{}' is not there", key));
  auto whole = value;
  whole["task"] = whole.value(kOwnPart, json());
  DROVER_TRY(auto record, decode_record(whole));
  workload::take_template(record.task, found->second);
  record.template_key = key;
  return record;
}

json encode(const TaskRecord& record) {
  return json::parse(text_of(record));
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
  record.gpus = decode_gpus(decoder, value);
  record.cpus = decode_numbers(decoder, value, "cpus");
  record.ports = decode_numbers(decoder, value, "ports");
  record.nics = decoder.string_list("nics").value_or(std::vector<std::string>{});
  record.gang_port = static_cast<int>(decoder.integer("gang_port", 0, 65535).value_or(0));
  record.address = decoder.string("address").value_or("");
  record.node = decoder.string("node").value_or("");
  record.containerizer = decoder.string("containerizer").value_or("");
  record.tier = decoder.string("tier").value_or("");
  record.reason = decoder.string("reason").value_or("");
  if (const auto cause = decoder.choice("cause", kCauses)) record.cause = static_cast<Cause>(*cause);
  record.asked = decoder.boolean("asked").value_or(false);
  record.set = static_cast<int>(decoder.integer("set", 0, 1LL << 30).value_or(0));
  record.shrunk_from = static_cast<std::uint64_t>(
      decoder.integer("shrunk_from", 0, static_cast<std::int64_t>(placement::kMostGpuMemory)).value_or(0));
  record.stop_requested = decoder.boolean("stop_requested").value_or(false);
  record.timed_out = decoder.boolean("timed_out").value_or(false);
  record.idled = decoder.boolean("idled").value_or(false);
  record.preempted = decoder.boolean("preempted").value_or(false);
  record.preemptions = static_cast<int>(decoder.integer("preemptions", 0, 1LL << 30).value_or(0));
  record.failures = static_cast<int>(decoder.integer("failures", 0, 1LL << 30).value_or(0));
  record.tries_again = decoder.boolean("tries_again").value_or(false);
  record.awaits = workload::decode_stored_dependencies(decoder, "awaits");
  record.not_before = decode_time(decoder, "not_before");
  record.retry_at = decode_time(decoder, "retry_at");
  record.stop_reason = decoder.string("stop_reason").value_or("");
  record.overdrawn = decoder.string("overdrawn").value_or("");
  record.overran = decoder.string("overran").value_or("");
  record.unhealthy = decoder.string("unhealthy").value_or("");
  record.gang_reason = decoder.string("gang_reason").value_or("");
  if (auto use = decoder.object("use")) record.use = workload::decode_use(*use);
  if (const auto status = decoder.integer("exit_status", 0, 255))
    record.exit_status = static_cast<int>(*status);
  record.submitted_at = decode_time(decoder, "submitted_at").value_or(TimePoint{});
  record.started_at = decode_time(decoder, "started_at");
  record.finished_at = decode_time(decoder, "finished_at");
  record.steady_started_at = decode_time(decoder, "steady_started_at");
  record.steady_finished_at = decode_time(decoder, "steady_finished_at");
  record.steady_held_since = decode_time(decoder, "steady_held_since");
  if (!mistakes.empty()) return Failure(join_mistakes(mistakes, "A stored task record"));
  return record;
}

}  // namespace drover::control
