#include "cli/task_rows.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>

#include "base/ranges.h"

namespace drover::cli {
namespace {

using nlohmann::json;

/// The field, or null when it is not there: a list of ten thousand is read without copies.
const json& field_or_null(const json& object, const char* name) {
  static const json none;
  const auto found = object.find(name);
  return found == object.end() ? none : *found;
}

std::string text_of(const json& object, const char* name) {
  const auto& value = field_or_null(object, name);
  return value.is_string() ? value.get<std::string>() : "";
}

std::string user_of(const json& record) {
  return text_of(field_or_null(record.at("task"), "user"), "name");
}

std::string age_of(const std::string& time, TimePoint now) {
  const auto then = parse_time(time);
  return then ? format_duration(std::max(now - *then, std::chrono::milliseconds(0))) : "-";
}

std::string gpus_of(const json& record, const KnownGpus& gpus) {
  const auto& task = record.at("task");
  const auto& grants = field_or_null(record, "grants");
  if (!grants.empty()) return granted(grants, field_or_null(task, "gpu_share"), gpus) + mps_words(task);
  const auto request = wanted(task);
  return request == "-" || is_final_state(text_of(record, "state")) ? "-" : "wants " + request;
}

std::string exit_of(const json& record) {
  const auto& status = field_or_null(record, "exit_status");
  return status.is_number() ? status.dump() : "-";
}

std::string status_of(const json& record) {
  auto reason = text_of(record, "reason");
  if (!reason.empty() || exit_of(record) == "-") return reason;
  return "exited with status " + exit_of(record);
}

std::string labels_of(const json& record) {
  std::vector<std::string> labels;
  const auto& all = field_or_null(record.at("task"), "labels");
  for (const auto& [name, value] : all.items()) labels.push_back(name + "=" + value.get<std::string>());
  return labels.empty() ? "-" : fmt::format("{}", fmt::join(labels, ","));
}

struct Column {
  const char* name;
  const char* title;
  std::string (*text)(const json& record, const KnownGpus& gpus, TimePoint now);
  bool usual;
};

std::string id_of(const json& record, const KnownGpus&, TimePoint) {
  return text_of(record.at("task"), "id");
}

const std::array kColumns = {
    Column{"id", "ID", id_of, true},
    Column{"name", "NAME", [](const json& record, auto&, auto) { return name_of_task(record.at("task")); },
           true},
    Column{"user", "USER", [](const json& record, auto&, auto) { return user_of(record); }, true},
    Column{"queue", "QUEUE", [](const json& record, auto&, auto) { return queue_of_task(record.at("task")); },
           true},
    Column{"state", "STATE", [](const json& record, auto&, auto) { return text_of(record, "state"); }, true},
    Column{"gpus", "GPUS", [](const json& record, auto& gpus, auto) { return gpus_of(record, gpus); }, true},
    Column{"age", "AGE",
           [](const json& record, auto&, auto now) { return age_of(text_of(record, "submitted_at"), now); },
           true},
    Column{"time", "TIME", [](const json& record, auto&, auto now) { return run_time(record, now); }, true},
    Column{"exit", "EXIT", [](const json& record, auto&, auto) { return exit_of(record); }, false},
    Column{"cause", "CAUSE",
           [](const json& record, auto&, auto) {
             const auto cause = text_of(record, "cause");
             return cause.empty() ? "-" : cause;
           },
           false},
    Column{"labels", "LABELS", [](const json& record, auto&, auto) { return labels_of(record); }, false},
    Column{"ended", "ENDED",
           [](const json& record, auto&, auto now) {
             const auto ended = age_of(text_of(record, "finished_at"), now);
             return ended == "-" ? ended : ended + " ago";
           },
           false},
    Column{"status", "STATUS", [](const json& record, auto&, auto) { return status_of(record); }, true}};

const Column* column(const std::string& name) {
  const auto* const found = std::ranges::find(kColumns, name, &Column::name);
  return found == kColumns.end() ? nullptr : found;
}

Failure no_such_column(const std::string& name) {
  std::vector<std::string> names;
  for (const auto& each : kColumns) names.emplace_back(each.name);
  return fail(ErrorKind::kInvalid, fmt::format("There is no column '{}'", name),
              fmt::format("there are {}", fmt::join(names, ", ")));
}

/// With * for any text.
bool matches(std::string_view pattern, std::string_view text) {
  const auto star = pattern.find('*');
  if (star == pattern.npos) return pattern == text;
  if (!text.starts_with(pattern.substr(0, star))) return false;
  const auto rest = pattern.substr(star + 1);
  for (auto begin = star; begin <= text.size(); ++begin)
    if (matches(rest, text.substr(begin))) return true;
  return false;
}

bool has_label(const json& task, const std::string& wanted) {
  const auto equals = wanted.find('=');
  const auto& labels = field_or_null(task, "labels");
  const auto found = labels.find(wanted.substr(0, equals));
  return found != labels.end() && (equals == wanted.npos || *found == wanted.substr(equals + 1));
}

bool is_in(const std::string& queue, const std::string& wanted) {
  return queue == wanted || queue.starts_with(wanted + "/");
}

bool one_of(const std::vector<std::string>& wanted, const std::function<bool(const std::string&)>& is) {
  return wanted.empty() || std::ranges::any_of(wanted, is);
}

/// What a column is sorted by: times and numbers as such.
json sort_key(const json& record, const Column& by) {
  const std::string name = by.name;
  if (name == "age") return text_of(record, "submitted_at");
  if (name == "ended") return text_of(record, "finished_at");
  if (name == "exit") return field_or_null(record, "exit_status");
  if (name == "gpus") return field_or_null(record.at("task"), "gpus");
  if (name == "time") {
    const auto begin = parse_time(text_of(record, "started_at")),
               end = parse_time(text_of(record, "finished_at"));
    return begin ? json((end.value_or(wall_clock()) - *begin).count()) : json();
  }
  return by.text(record, KnownGpus(json::object()), {});
}

}  // namespace

std::string name_of_task(const json& task) {
  const auto& gang = field_or_null(task, "gang");
  const auto& array = field_or_null(task, "array");
  if (gang.is_object()) return fmt::format("{}[{}]", text_of(task, "name"), gang.value("rank", 0));
  if (const auto& joined = field_or_null(array, "indices"); joined.is_string())
    return fmt::format("{}[{}]", text_of(task, "name"), joined.get<std::string>());
  if (array.is_object()) return fmt::format("{}[{}]", text_of(task, "name"), array.value("index", 0));
  return text_of(task, "name");
}

std::string queue_of_task(const json& task) {
  const int priority = task.value("priority", 0);
  return text_of(task, "queue") + (priority == 0 ? "" : fmt::format(" {:+}", priority));
}

bool is_final_state(const std::string& state) {
  return state == "finished" || state == "failed" || state == "killed" || state == "lost";
}

Colour colour_of_state(const std::string& state) {
  if (state == "running") return Colour::kGreen;
  if (state == "failed" || state == "lost") return Colour::kRed;
  return is_final_state(state) ? Colour::kDim : Colour::kYellow;
}

std::string run_time(const json& record, TimePoint now) {
  const auto began = parse_time(text_of(record, "started_at"));
  if (!began) return "-";
  const auto ended = parse_time(text_of(record, "finished_at")).value_or(now);
  return format_duration(std::max(ended - *began, std::chrono::milliseconds(0)));
}

std::chrono::milliseconds time_of_keeping(const json& nodes) {
  return std::chrono::milliseconds(
      nodes.value(json::json_pointer("/nodes/0/keep_ended_ms"), std::int64_t{0}));
}

std::optional<TimePoint> kept_until(const json& record, std::chrono::milliseconds kept) {
  const auto ended = parse_time(text_of(record, "finished_at"));
  if (!ended || kept.count() == 0) return std::nullopt;
  return *ended + kept;
}

std::string note_of_removals(const std::vector<json>& records, std::chrono::milliseconds kept,
                             TimePoint now) {
  const auto soon = std::min<std::chrono::milliseconds>(std::chrono::days(1), kept / 4);
  const auto count = std::ranges::count_if(records, [&](const json& record) {
    const auto until = kept_until(record, kept);
    return until && *until < now + soon;
  });
  if (count == 0) return "";
  return fmt::format(
      "{} will be forgotten within {}, with what {} wrote: 'drover files get' brings it, 'drover show' says "
      "when",
      counted(static_cast<double>(count), "task"), format_duration(soon), count == 1 ? "it" : "they");
}

bool TaskFilter::takes(const json& record) const {
  const auto& task = record.at("task");
  const auto state = text_of(record, "state"), user = user_of(record), queue = text_of(task, "queue");
  if (!one_of(states, [&](const auto& wanted) { return state == wanted; }) ||
      !one_of(users, [&](const auto& wanted) { return user == wanted; }) ||
      !one_of(queues, [&](const auto& wanted) { return is_in(queue, wanted); }) ||
      !std::ranges::all_of(labels, [&](const auto& wanted) { return has_label(task, wanted); }))
    return false;
  if (!name.empty() && !matches(name, text_of(task, "name"))) return false;
  const auto accepted = parse_time(text_of(record, "submitted_at"));
  return !since || (accepted && *accepted >= *since);
}

std::vector<std::string> task_columns() {
  std::vector<std::string> names;
  for (const auto& each : kColumns)
    if (each.usual) names.emplace_back(each.name);
  return names;
}

Status check_columns(const std::vector<std::string>& names) {
  for (const auto& name : names)
    if (column(name) == nullptr) return no_such_column(name);
  return {};
}

TaskRows::TaskRows(std::vector<std::string> columns, const KnownGpus& gpus, TimePoint now)
    : columns_(std::move(columns)), gpus_(gpus), now_(now) {}

std::vector<Cell> TaskRows::row(const json& record) const {
  std::vector<Cell> cells;
  for (const auto& name : columns_) {
    cells.emplace_back(column(name)->text(record, gpus_, now_));
    if (name == "state") cells.back().colour = colour_of_state(cells.back().text);
  }
  return cells;
}

std::vector<std::string> TaskRows::header(bool simulated) const {
  std::vector<std::string> titles;
  for (const auto& name : columns_)
    titles.push_back(column(name)->title + std::string(simulated && name == "gpus" ? " (simulated)" : ""));
  return titles;
}

std::vector<json> with_waiting_arrays_joined(const std::vector<json>& records) {
  std::map<std::string, std::vector<int>> waiting;
  const auto array_of = [](const json& record) -> const json& {
    static const json none;
    return text_of(record, "state") == "queued" ? field_or_null(record.at("task"), "array") : none;
  };
  for (const auto& record : records)
    if (const auto& array = array_of(record); array.is_object())
      waiting[text_of(array, "id")].push_back(array.value("index", 0));
  std::vector<json> joined;
  for (const auto& record : records) {
    const auto& array = array_of(record);
    const auto found = array.is_object() ? waiting.find(text_of(array, "id")) : waiting.end();
    if (!array.is_object() || (found != waiting.end() && found->second.size() == 1)) {
      joined.push_back(record);
      continue;
    }
    if (found == waiting.end()) continue;  // it stands there already
    std::ranges::sort(found->second);
    const auto indices = format_ranges(found->second);
    joined.push_back(record);
    auto& task = joined.back()["task"];
    task["id"] = fmt::format("{}-[{}]", found->first, indices);
    task["array"]["indices"] = indices;
    waiting.erase(found);
  }
  return joined;
}

Status sort_records(std::vector<json>& records, const std::string& by) {
  const bool descending = by.starts_with('-');
  const auto* const key = column(by.substr(descending ? 1 : 0));
  if (key == nullptr) return no_such_column(by.substr(descending ? 1 : 0));
  std::vector<std::pair<json, std::size_t>> order;
  for (const auto& record : records) order.emplace_back(sort_key(record, *key), order.size());
  std::ranges::sort(order, [&](const auto& one, const auto& other) {
    if (one.first == other.first) return one.second < other.second;
    return descending ? other.first < one.first : one.first < other.first;
  });
  std::vector<json> sorted;
  for (const auto& [value, at] : order) sorted.push_back(std::move(records[at]));
  records = std::move(sorted);
  return {};
}

}  // namespace drover::cli
