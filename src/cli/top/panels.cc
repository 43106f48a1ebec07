#include "cli/top/panels.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "cli/gpu_words.h"
#include "cli/task_rows.h"
#include "cli/words.h"

namespace drover::cli::top {
namespace {

using nlohmann::json;

constexpr double kBusy = 85, kWarm = 50;  // percent
constexpr std::size_t kDigitsOfContainer = 12;

std::optional<double> number_at(const json& object, const char* field) {
  const auto found = object.find(field);
  return found != object.end() && found->is_number() ? std::optional(found->get<double>()) : std::nullopt;
}

std::string text_at(const json& object, const char* field) {
  const auto found = object.find(field);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

Field number_field(std::optional<double> value, double unit, const char* suffix) {
  if (!value) return {.text = "-", .order = -1};
  return {.text = fmt::format("{:.0f}{}", *value / unit, suffix), .order = *value};
}

Field memory_field(std::optional<double> bytes) {
  if (!bytes) return {.text = "-", .order = -1};
  return {.text = format_bytes(static_cast<std::uint64_t>(*bytes)), .order = *bytes};
}

Field load_field(std::optional<double> percent) {
  auto field = number_field(percent, 1, "%");
  field.percent = percent.value_or(0);
  field.colour =
      !percent || *percent < kWarm ? Colour::kGreen : (*percent < kBusy ? Colour::kYellow : Colour::kRed);
  return field;
}

// The GPUs

Row gpu_row(const json& gpu, const Histories& histories) {
  constexpr double kMilli = 1000, kFull = 100;
  const auto usage = usage_of(gpu);
  const auto index = std::to_string(gpu.value("index", 0));
  const auto node = gpu.value("node", "");
  Field memory = {.text = memory_of_gpu(gpu), .colour = Colour::kGreen};
  const auto used = number_at(usage, "memory_used_bytes"), all = number_at(gpu, "memory_bytes");
  memory.order = used.value_or(-1);
  memory.percent = used && all && *all > 0 ? *used / *all * kFull : 0;
  const auto health = health_of_gpu(gpu);
  const bool well = health.starts_with("ok");
  Field users = {.text = users_of_gpu(gpu)};
  if (!well) users = {health + (users.text == "-" ? "" : "; " + users.text), Colour::kRed};
  Row row{.key = node + "/" + gpu.value("uuid", ""), .gpus = {index}};
  for (const auto& holder : gpu.value("holders", json::array())) row.user += holder.value("user", "") + " ";
  row.fields = {
      {.text = index, .order = gpu.value("index", 0)},
      {.text = node},
      {.text = gpu.value("model", "")},
      load_field(number_at(usage, "gpu_percent")),
      {.order = number_at(usage, "gpu_percent").value_or(-1), .graph = histories.of(gpu.value("uuid", ""))},
      std::move(memory),
      number_field(number_at(usage, "temperature"), 1, "C"),
      number_field(number_at(usage, "power_mw"), kMilli, "W"),
      std::move(users)};
  return row;
}

bool of_several_nodes(const json& gpus) {
  return std::ranges::any_of(
      gpus, [&](const json& gpu) { return gpu.value("node", "") != gpus.front().value("node", ""); });
}

Panel gpu_panel(const json& gpus, const Histories& histories) {
  constexpr int kWide = 140, kNever = 1 << 20;
  Panel panel{.title = fmt::format("GPUs: {}", gpus.size())};
  panel.columns = {{"GPU", 3, true},
                   {"NODE", 14, false, of_several_nodes(gpus) ? 0 : kNever},
                   {"MODEL", 24, false, kWide},
                   {"USE", 11},
                   {"HISTORY", 9},
                   {"MEMORY", 23},
                   {"TEMP", 4, true},
                   {"POWER", 5, true},
                   {"USED BY", 10, false, 0, true}};
  for (const auto& gpu : gpus) panel.rows.push_back(gpu_row(gpu, histories));
  return panel;
}

// Tasks

struct KnownTask {
  std::string name, user;
};
/// By id: tasks, and the gangs and arrays that they are of.
using KnownTasks = std::map<std::string, KnownTask>;

KnownTasks known_tasks(const json& records) {
  KnownTasks known;
  for (const auto& record : records) {
    const auto& task = record.at("task");
    const auto user = task.at("user").value("name", "");
    known[task.value("id", "")] = {name_of_task(task), user};
    for (const auto* whole : {"gang", "array"})
      if (task.contains(whole)) known[task.at(whole).value("id", "")] = {task.value("name", ""), user};
  }
  return known;
}

/// Their places in the queue, by id.
std::map<std::string, int> places_of(const json& queues) {
  std::map<std::string, int> places;
  for (const auto& queue : queues)
    for (const auto& waiting : queue.value("waiting", json::array()))
      if (const auto id = text_at(waiting, "id"); !id.empty()) places[id] = waiting.value("place", 0);
  return places;
}

/// Of a task, or of the gang that it waits with; 0 when it is in no queue.
int place_of(const json& task, const std::map<std::string, int>& places) {
  auto found = places.find(task.value("id", ""));
  if (found == places.end() && task.contains("gang")) found = places.find(task.at("gang").value("id", ""));
  return found == places.end() ? 0 : found->second;
}

constexpr double kBehindAll = 1e9;
constexpr std::size_t kStateField = 3;

/// "waiting 3"; sorts what runs before what waits, and that by its place.
Field state_field(const std::string& state, int place) {
  if (state != "queued") return {.text = state, .colour = colour_of_state(state), .order = 0};
  if (place == 0) return {.text = "waiting", .colour = Colour::kYellow, .order = kBehindAll};
  return {.text = fmt::format("waiting {}", place), .colour = Colour::kYellow, .order = place};
}

Row task_row(const json& record, const std::map<std::string, int>& places, const KnownGpus& gpus,
             TimePoint now) {
  const auto& task = record.at("task");
  const auto grants = record.value("grants", json::array());
  const auto state = record.value("state", "");
  const auto started = parse_time(text_at(record, "started_at"));
  Row row{.key = task.value("id", ""),
          .task = task.value("id", ""),
          .task_name = name_of_task(task),
          .user = task.at("user").value("name", "")};
  for (const auto& grant : grants) row.gpus.push_back(gpus.index(grant.value("gpu", "")));
  const auto have = granted(grants, task.value("gpu_share", json()), gpus);
  const auto want = wanted(task);
  row.fields = {
      {.text = row.task},
      {.text = row.task_name},
      {.text = row.user},
      state_field(state, place_of(task, places)),
      {.text = !have.empty() ? have : (state == "queued" && want != "-" ? "wants " + want : "-")},
      {.text = run_time(record, now), .order = started ? static_cast<double>((now - *started).count()) : -1},
      {.text = queue_of_task(task)},
      {.text = record.value("reason", "")}};
  return row;
}

/// What waits of others, of which is told only that it does.
Row stranger_row(const json& waiting, const std::string& queue) {
  const auto place = waiting.value("place", 0);
  const auto members = waiting.value("members", 1);
  const auto gpus = number_at(waiting.value("wanted", json::object()), "gpus").value_or(0);
  Row row{.key = fmt::format("waiting {}", place), .user = waiting.value("user", "")};
  row.fields = {{.text = "-"},
                {.text = members > 1 ? fmt::format("{} members", members) : "-"},
                {.text = row.user},
                state_field("queued", place),
                {.text = gpus > 0 ? fmt::format("wants {:g}", gpus) : "-"},
                {.text = "-", .order = -1},
                {.text = queue},
                {.text = ""}};
  return row;
}

/// What runs, then what waits, by place; else as it came.
void put_in_order(std::vector<Row>& rows) {
  std::vector<std::pair<double, std::size_t>> order;
  for (const auto& row : rows) order.emplace_back(*row.fields.at(kStateField).order, order.size());
  std::ranges::sort(order);
  std::vector<Row> sorted;
  for (const auto& [_, at] : order) sorted.push_back(std::move(rows[at]));
  rows = std::move(sorted);
}

Panel task_panel(const Snapshot& snapshot) {
  constexpr int kWide = 120;
  Panel panel;
  panel.columns = {{"TASK", 12},
                   {"NAME", 12},
                   {"USER", 8},
                   {"STATE", 10},
                   {"GPUS", 9},
                   {"TIME", 7, true},
                   {"QUEUE", 16, false, kWide},
                   {"WHY", 10, false, 0, true}};
  const KnownGpus gpus(snapshot.gpus);
  const auto places = places_of(snapshot.queues);
  std::size_t waiting = 0;
  for (const auto& record : snapshot.tasks) {
    if (record.value("state", "") == "queued") ++waiting;
    panel.rows.push_back(task_row(record, places, gpus, snapshot.at));
  }
  const auto running = panel.rows.size() - waiting;
  for (const auto& queue : snapshot.queues)
    for (const auto& other : queue.value("waiting", json::array()))
      if (text_at(other, "id").empty()) panel.rows.push_back(stranger_row(other, queue.value("queue", "")));
  put_in_order(panel.rows);
  panel.title = fmt::format("Tasks: {} run, {} wait", running, panel.rows.size() - running);
  return panel;
}

// Processes

/// Of a task its owner, else whose it is by the kernel: by name, where that is known here.
std::string user_of_process(const json& process, const Snapshot& snapshot) {
  if (auto user = text_at(process, "user"); !user.empty()) return user;
  const auto uid = number_at(process, "uid");
  if (!uid) return "-";
  const auto name = snapshot.users.find(static_cast<std::uint32_t>(*uid));
  return name == snapshot.users.end() ? fmt::format("{:.0f}", *uid) : name->second;
}

std::string or_dash(std::string text) {
  return text.empty() ? "-" : std::move(text);
}

Row process_row(const json& process, const json& gpu, const Snapshot& snapshot, const KnownTasks& tasks) {
  const auto index = std::to_string(gpu.value("index", 0));
  const auto pid = number_at(process, "pid").value_or(0);
  Row row{.key = fmt::format("{} {}", gpu.value("uuid", ""), pid),
          .task = text_at(process, "task"),
          .user = user_of_process(process, snapshot),
          .gpus = {index}};
  if (const auto known = tasks.find(row.task); known != tasks.end()) row.task_name = known->second.name;
  row.fields = {number_field(pid, 1, ""),
                number_field(number_at(process, "container_pid"), 1, ""),
                {.text = index, .order = gpu.value("index", 0)},
                {.text = row.user},
                {.text = or_dash(row.task)},
                {.text = or_dash(row.task_name)},
                {.text = or_dash(text_at(process, "container").substr(0, kDigitsOfContainer))},
                memory_field(number_at(process, "memory_bytes")),
                number_field(number_at(process, "gpu_percent"), 1, "%"),
                {.text = or_dash(text_at(process, "name"))}};
  return row;
}

Panel process_panel(const Snapshot& snapshot, const json& gpus) {
  constexpr int kWide = 110;
  Panel panel;
  panel.columns = {{"PID", 8, true},
                   {"INSIDE", 7, true},
                   {"GPU", 3, true},
                   {"USER", 10},
                   {"TASK", 12},
                   {"NAME", 16, false, kWide},
                   {"CONTAINER", 12, false, kWide},
                   {"MEMORY", 10, true},
                   {"USE", 4, true},
                   {"PROGRAM", 10, false, 0, true}};
  const auto tasks = known_tasks(snapshot.tasks);
  for (const auto& gpu : gpus)
    for (const auto& process : usage_of(gpu).value("processes", json::array()))
      panel.rows.push_back(process_row(process, gpu, snapshot, tasks));
  panel.title = fmt::format("Processes: {}", panel.rows.size());
  return panel;
}

}  // namespace

void Histories::add(const json& gpus) {
  std::map<std::string, std::vector<int>> next;
  for (const auto& gpu : gpus.value("gpus", json::array())) {
    const auto uuid = gpu.value("uuid", "");
    auto history = std::move(by_uuid_[uuid]);
    if (history.size() >= kLongest) history.erase(history.begin());
    history.push_back(static_cast<int>(number_at(usage_of(gpu), "gpu_percent").value_or(-1)));
    next[uuid] = std::move(history);
  }
  by_uuid_ = std::move(next);
}

const std::vector<int>& Histories::of(const std::string& uuid) const {
  static const std::vector<int> kNone;
  const auto found = by_uuid_.find(uuid);
  return found == by_uuid_.end() ? kNone : found->second;
}

Panels panels_of(const Snapshot& snapshot, const Histories& histories) {
  const auto gpus = snapshot.gpus.value("gpus", json::array());
  return {gpu_panel(gpus, histories), process_panel(snapshot, gpus), task_panel(snapshot)};
}

std::string machine_words(const Snapshot& snapshot) {
  std::vector<std::string> words;
  const auto gpus = snapshot.gpus.value("gpus", json::array());
  if (!gpus.empty() && !of_several_nodes(gpus)) words.push_back(gpus.front().value("node", ""));
  if (snapshot.gpus.value("simulated", false))
    words.push_back(fmt::format("simulated ({})", snapshot.gpus.value("simulation", "")));
  if (const auto driver = snapshot.gpus.value("driver_version", ""); !driver.empty())
    words.push_back("driver " + driver);
  for (const auto& problem : snapshot.gpus.value("problems", json::array()))
    words.push_back("problem: " + problem.value("message", ""));
  std::erase(words, "");
  return fmt::format("{}", fmt::join(words, ", "));
}

}  // namespace drover::cli::top
