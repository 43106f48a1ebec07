#include "cli/services/changes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "base/json_text.h"
#include "base/shorten.h"
#include "chronos/job.h"
#include "cli/printable.h"
#include "cli/words.h"
#include "marathon/app.h"
#include "marathon/group.h"

namespace drover::cli {
namespace {

using nlohmann::json;

constexpr std::size_t kMostWords = 8;
constexpr std::size_t kLongestValue = 60;

/// What an app has only in answers, and what is about a definition rather than in it.
bool only_in_answers(const std::string& name) {
  static const std::set<std::string> names = {
      "tasks",   "tasksStaged", "tasksRunning",    "tasksHealthy",          "tasksUnhealthy", "deployments",
      "version", "versionInfo", "lastTaskFailure", "readinessCheckResults", "taskStats",      "id",
      "name",    "uris"};
  return names.contains(name);
}

std::string value_text(const json& value) {
  if (value.is_null()) return "none";
  if (value.is_number_float()) return fmt::format("{}", value.get<double>());
  auto text = printable(value.is_string() ? value.get<std::string>() : to_text(value));
  if (text.empty()) return "''";
  return shortened(std::move(text), kLongestValue);
}

/// "docker.image" is what people call the image.
std::string field_text(const std::string& path) {
  if (path == "container.docker.image" || path == "container.image") return "image";
  return printable(path);
}

bool is_secret(const std::string& path) {
  return path.starts_with("env.") || path.starts_with("environmentVariables") || path.starts_with("secrets");
}

void compare(const json& before, const json& now, const std::string& path, std::vector<std::string>& words) {
  if (before == now) return;
  if (before.is_object() && now.is_object()) {
    std::set<std::string> names;
    for (const auto& [name, value] : before.items()) names.insert(name);
    for (const auto& [name, value] : now.items()) names.insert(name);
    for (const auto& name : names) {
      if (path.empty() && only_in_answers(name)) continue;
      compare(before.value(name, json()), now.value(name, json()), path.empty() ? name : path + "." + name,
              words);
    }
    return;
  }
  if (before.is_array() && now.is_array() && before.size() == now.size() && !path.empty()) {
    for (std::size_t i = 0; i < now.size(); ++i)
      compare(before[i], now[i], fmt::format("{}({})", path, i), words);
    return;
  }
  const auto field = field_text(path);
  if (is_secret(path) || before.is_structured() || now.is_structured()) {
    words.push_back(field + (before.is_null() ? " added" : now.is_null() ? " removed" : " changed"));
    return;
  }
  words.push_back(fmt::format("{} {} → {}", field, value_text(before), value_text(now)));
}

double number_in(const json& value, const char* field, double fallback) {
  const auto found = value.find(field);
  return found != value.end() && found->is_number() ? found->get<double>() : fallback;
}

/// The app as the daemon shows it.
json shown(const marathon::App& app) {
  return json::parse(marathon::show(app.service), nullptr, false);
}

/// An app of the API, read again.
std::optional<marathon::App> read_existing(const json& existing) {
  auto app = marathon::decode_app(existing, {});
  if (!app) return std::nullopt;
  return std::move(*app);
}

Change describe_app(json wanted, const std::string& id, const json& existing) {
  Change change{id, DefinitionKind::kApp, ChangeKind::kNew, {}, std::move(wanted)};
  if (existing.is_object()) {
    change.words = differences(existing, change.wanted);
    change.kind = change.words.empty() ? ChangeKind::kUnchanged : ChangeKind::kChanged;
    return change;
  }
  const auto instances = number_in(change.wanted, "instances", 1);
  auto text = counted(instances, "instance");
  if (const auto gpus = number_in(change.wanted, "gpus", 0); gpus > 0)
    text += " with " + counted(gpus, "GPU") + (instances > 1 ? " each" : "");
  change.words = {text};
  return change;
}

/// Whether two schedules are one. Of an interval the daemon shows when it is next, and how often still.
bool same_schedule(const std::string& before, const std::string& now) {
  const auto period = [](const std::string& text) {
    return text.substr(std::min(text.rfind('/'), text.size()));
  };
  const auto endless = [](const std::string& text) { return text.starts_with("R/"); };
  const auto is_interval = [](const std::string& text) { return text.starts_with('R'); };
  return before == now || (is_interval(before) && is_interval(now) && period(before) == period(now) &&
                           endless(before) == endless(now));
}

/// A job with every default written out: of a definition, or of one that the API shows. Empty when it cannot
/// be read.
json shown_job(const json& job, TimePoint now) {
  const auto parents = job.find("parents");
  const bool dependent = parents != job.end() && parents->is_array() && !parents->empty();
  const auto read = chronos::read_job(
      to_text(job), dependent ? chronos::JobKind::kDependent : chronos::JobKind::kScheduled, nullptr, now);
  if (!read) return json::object();
  const auto& schedule = read->schedule;
  auto shown = json::parse(schedule.definition, nullptr, false);
  shown["shell"] = schedule.shell;
  shown["retries"] = schedule.retries;
  shown["disabled"] = schedule.disabled;
  shown["softError"] = schedule.soft_error;
  shown["concurrent"] = schedule.concurrent;
  if (dependent) {
    shown["parents"] = schedule.parents;
  } else {
    shown["schedule"] = job.value("schedule", "");
    shown["scheduleTimeZone"] = schedule.time_zone;
  }
  return shown;
}

}  // namespace

std::string_view change_word(ChangeKind kind) {
  switch (kind) {
    case ChangeKind::kNew:
      return "new";
    case ChangeKind::kChanged:
      return "changed";
    case ChangeKind::kUnchanged:
      return "unchanged";
    default:
      return "removed";
  }
}

std::string sentence(const Change& change) {
  auto text = printable(change.name) + ": ";
  if (change.kind != ChangeKind::kChanged) text += change_word(change.kind);
  if (change.words.empty()) return text;
  const auto told = std::min(change.words.size(), kMostWords);
  if (change.kind != ChangeKind::kChanged) text += ", ";
  text += fmt::format("{}", fmt::join(change.words.begin(), change.words.begin() + told, ", "));
  if (told < change.words.size()) text += fmt::format(" and {} more", change.words.size() - told);
  return text;
}

std::vector<std::string> differences(const json& before, const json& now) {
  std::vector<std::string> words;
  compare(before, now, "", words);
  return words;
}

Change change_of_app(const json& definition, const json& existing) {
  std::vector<int> own_ports;
  if (existing.is_object())
    if (const auto before = read_existing(existing)) own_ports = marathon::service_ports(before->service);
  const auto app = marathon::decode_app(definition, {}, std::move(own_ports));
  if (!app) return {};
  return describe_app(shown(*app), app->service.id, existing);
}

std::vector<Change> changes_of_group(const Definition& definition, const json& existing) {
  std::map<std::string, json> before;
  std::map<std::string, marathon::App> read;
  marathon::GroupContents contents;
  for (auto& app : apps_within(existing)) {
    const auto id = app.value("id", "");
    if (auto decoded = read_existing(app))
      contents.apps[id] = &read.emplace(id, std::move(*decoded)).first->second.service;
    before.emplace(id, std::move(app));
  }
  const auto group = marathon::decode_group(definition.name, definition.value, contents, {});
  std::vector<Change> changes;
  if (!group) return changes;
  for (const auto& app : group->apps) {
    const auto found = before.find(app.service.id);
    changes.push_back(
        describe_app(shown(app), app.service.id, found == before.end() ? json() : found->second));
    if (found != before.end()) before.erase(found);
  }
  for (const auto& [id, app] : before)
    if (!group->kept.contains(id))
      changes.push_back({id, DefinitionKind::kApp, ChangeKind::kRemoved, {}, {}});
  return changes;
}

Change change_of_job(const Definition& definition, const json& existing, TimePoint now) {
  Change change{definition.name, definition.kind, ChangeKind::kNew, {}, shown_job(definition.value, now)};
  const auto& wanted = change.wanted;
  if (!existing.is_object()) {
    change.words = {
        wanted.contains("parents")
            ? fmt::format("after {}", fmt::join(wanted.value("parents", std::set<std::string>()), ", "))
            : wanted.value("schedule", "")};
    if (const auto gpus = number_in(wanted, "gpus", 0); gpus > 0)
      change.words.front() += " with " + counted(gpus, "GPU");
    return change;
  }
  auto before = shown_job(existing, now);
  if (before.contains("schedule") && wanted.contains("schedule") &&
      same_schedule(before.value("schedule", ""), wanted.value("schedule", "")))
    before["schedule"] = wanted["schedule"];
  change.words = differences(before, wanted);
  change.kind = change.words.empty() ? ChangeKind::kUnchanged : ChangeKind::kChanged;
  return change;
}

Change change_of_task(const Definition& definition) {
  const auto& wanted = definition.value;
  auto words = fmt::format("a {}", kind_word(definition.kind));
  const auto gang = wanted.value("gang", json::object());
  if (const auto members = gang.find("members"); members != gang.end() && members->is_array())
    words += fmt::format(" of {}", members->size());
  else if (definition.kind == DefinitionKind::kGang)
    words += fmt::format(" of {}", number_in(gang, "size", 1));
  const bool each = definition.kind == DefinitionKind::kGang;
  if (const auto gpus = number_in(wanted, "gpus", 0); gpus > 0)
    words += " with " + counted(gpus, "GPU") + (each ? " each" : "");
  return {definition.name, definition.kind, ChangeKind::kNew, {std::move(words)}, wanted};
}

std::vector<json> apps_within(const json& group) {
  std::vector<json> all;
  std::vector<const json*> open = {&group};
  while (!open.empty()) {
    const auto* next = open.back();
    open.pop_back();
    if (!next->is_object()) continue;
    if (const auto apps = next->find("apps"); apps != next->end() && apps->is_array())
      for (const auto& app : *apps)
        if (app.is_object()) all.push_back(app);
    if (const auto groups = next->find("groups"); groups != next->end() && groups->is_array())
      for (const auto& inner : *groups) open.push_back(&inner);
  }
  return all;
}

}  // namespace drover::cli
