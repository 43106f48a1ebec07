#include "cli/definitions/definition.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "base/decode.h"
#include "base/json_text.h"
#include "chronos/job.h"
#include "cli/printable.h"
#include "marathon/app.h"
#include "marathon/group.h"
#include "marathon/path.h"

namespace drover::cli {
namespace {

using nlohmann::json;

constexpr const char* kWhatThereIs =
    "an app has 'id' and 'cmd', 'args' or 'container'; a group has 'id' and 'apps' or 'groups'; a job has "
    "'name', 'command' and 'schedule' or 'parents'";

/// Marathon's codes of wrong types, in words.
std::string in_words(const std::string& text) {
  static const std::map<std::string, std::string> words = {
      {"error.path.missing", "it is missing"},
      {"error.expected.jsstring", "expected text"},
      {"error.expected.jsnumber", "expected a number"},
      {"error.expected.int", "expected a whole number"},
      {"error.expected.jsboolean", "expected true or false"},
      {"error.expected.jsobject", "expected an object"},
      {"error.expected.jsarray", "expected a list"},
      {"error.unknown.enum.literal", "it is none of the words that can stand here"},
      {"error.min", "it is too small"},
      {"error.max", "it is too large"},
      {"error.minLength", "it is too short"},
      {"error.maxLength", "it is too long"}};
  const auto found = words.find(text);
  return found == words.end() ? text : found->second;
}

bool has(const json& value, const char* name) {
  const auto found = value.find(name);
  return found != value.end() && !found->is_null();
}

std::optional<DefinitionKind> kind_of(const json& value) {
  if (has(value, "apps") || has(value, "groups"))
    return has(value, "name") && !has(value, "id") ? std::nullopt : std::optional(DefinitionKind::kGroup);
  if (has(value, "schedule")) return DefinitionKind::kJob;
  if (has(value, "parents")) return DefinitionKind::kDependentJob;
  if (has(value, "id") && (has(value, "cmd") || has(value, "args") || has(value, "container")))
    return DefinitionKind::kApp;
  return std::nullopt;
}

/// What is nearest to something that is neither.
std::string nearest_kind(const json& value) {
  if (has(value, "apiVersion") && has(value, "kind"))
    return "it looks like an object of Kubernetes, which this command does not take";
  static const std::set<std::string> telling = {"id",      "cmd",     "args", "container",
                                                "apps",    "groups",  "name", "schedule",
                                                "parents", "command", "pods", "service"};
  for (const auto& [name, unused] : value.items()) {
    if (telling.contains(name)) continue;
    const auto meant = nearest(name, telling);
    if (!meant.empty()) return fmt::format("did you mean '{}' in place of '{}'?", meant, printable(name));
  }
  if (has(value, "id")) return "it is nearest to an app: that needs 'cmd', 'args' or 'container'";
  if (has(value, "name") && has(value, "command"))
    return "it is nearest to a job: that needs 'schedule' or 'parents'";
  if (has(value, "cmd") || has(value, "container")) return "it is nearest to an app: that needs 'id'";
  if (has(value, "name") || has(value, "command"))
    return "it is nearest to a job: that needs 'name', 'command' and 'schedule' or 'parents'";
  return kWhatThereIs;
}

class FileReader {
 public:
  FileReader(const std::string& file, std::string_view text, TimePoint now)
      : file_(file), text_(text), now_(now) {}

  Definitions read() {
    const auto documents = parse_documents(text_, file_.ends_with(".json"));
    if (!documents)
      add(documents.error());
    else if (documents->empty())
      add({{}, "", "there is nothing in it", kWhatThereIs});
    else
      for (const auto& document : *documents) read(document);
    return std::move(result_);
  }

 private:
  void read(const Document& document) {
    if (!document.value.is_array()) return read(document, document.value, "");
    if (document.value.empty()) add({document.place_of(""), "", "the list is empty", kWhatThereIs});
    for (std::size_t i = 0; i < document.value.size(); ++i)
      read(document, document.value[i], fmt::format("({})", i));
  }

  void read(const Document& document, const json& value, const std::string& path) {
    const auto add_here = [&](const std::string& inner, std::string message, std::string hint = "") {
      const auto whole = path + (inner == "/" ? "" : inner);
      add({document.place_of(whole), whole, in_words(message), std::move(hint)});
    };
    if (!value.is_object())
      return add_here("", fmt::format("expected an app, a group or a job, found {}", value.type_name()),
                      kWhatThereIs);
    const auto kind = kind_of(value);
    if (!kind) return add_here("", "this is neither an app nor a group nor a job", nearest_kind(value));
    Definition definition{*kind, "", value, file_, document.place_of(path)};
    const auto before = result_.findings.size();
    switch (*kind) {
      case DefinitionKind::kApp:
        definition.name = read_app(value, add_here);
        break;
      case DefinitionKind::kGroup:
        definition.name = read_group(value, add_here);
        break;
      default:
        definition.name = read_job(value, *kind, add_here);
    }
    if (result_.findings.size() == before) result_.all.push_back(std::move(definition));
  }

  template <typename Add>
  static void report(const marathon::Refusal& refusal, const Add& add_here) {
    if (refusal.details.empty()) add_here("", refusal.message, refusal.text);
    for (const auto& detail : refusal.details)
      for (const auto& error : detail.errors) add_here(detail.path, error);
  }

  template <typename Add>
  static std::string read_app(const json& value, const Add& add_here) {
    const auto app = marathon::decode_app(value, {});
    if (!app) return report(app.error(), add_here), "";
    return app->service.id;
  }

  template <typename Add>
  static std::string read_group(const json& value, const Add& add_here) {
    // Without an id it would be the root: what is not in the file would go.
    if (!value.contains("id") || !value["id"].is_string())
      return add_here("", "a group needs an 'id'", "for some apps without a group, write a list of apps"), "";
    const auto id = marathon::absolute_path(value["id"].get<std::string>());
    if (id == "/")
      return add_here("/id", "the root group is not taken: all that is not in the file would go",
                      "give it an id of its own, or write a list of apps"),
             "";
    const auto group = marathon::decode_group(id, value, {}, {});
    if (!group) return report(group.error(), add_here), "";
    return id;
  }

  template <typename Add>
  std::string read_job(const json& value, DefinitionKind kind, const Add& add_here) {
    const auto body = to_text(value);
    const auto job = chronos::read_job(
        body, kind == DefinitionKind::kJob ? chronos::JobKind::kScheduled : chronos::JobKind::kDependent,
        nullptr, now_);
    if (job) return job->schedule.name;
    for (const auto& error : job.error()) {
      const bool of_schedule = error.path.empty() && error.message.find("chedule") != std::string::npos;
      add_here(of_schedule ? "/schedule" : error.path, error.message, error.hint);
    }
    return "";
  }

  void add(Mistake mistake) {
    const std::string line(line_of(text_, mistake.place.line));
    result_.findings.push_back({file_, std::move(mistake), line});
  }

  const std::string& file_;
  std::string_view text_;
  TimePoint now_;
  Definitions result_;
};

}  // namespace

std::string_view kind_word(DefinitionKind kind) {
  switch (kind) {
    case DefinitionKind::kApp:
      return "app";
    case DefinitionKind::kGroup:
      return "group";
    default:
      return "job";
  }
}

void Definitions::add(Definitions more) {
  std::move(more.all.begin(), more.all.end(), std::back_inserter(all));
  std::move(more.findings.begin(), more.findings.end(), std::back_inserter(findings));
}

Definitions read_definitions(const std::string& file, std::string_view text, TimePoint now) {
  auto read = FileReader(file, text, now).read();
  std::ranges::sort(read.findings, {}, [](const Finding& finding) {
    const auto& mistake = finding.mistake;
    return std::tuple(mistake.place.line, mistake.place.column, mistake.path, mistake.message);
  });
  return read;
}

void find_doubles(Definitions& definitions) {
  std::map<std::string, const Definition*> seen;
  for (const auto& each : definitions.all) {
    const auto [first, fresh] = seen.emplace(fmt::format("{} {}", kind_word(each.kind), each.name), &each);
    if (fresh) continue;
    const auto where = fmt::format("'{}', line {}", first->second->file, first->second->place.line);
    const auto words =
        fmt::format("the {} '{}' stands in {} already", kind_word(each.kind), each.name, where);
    definitions.findings.push_back({each.file, {each.place, "", words, "keep one of the two"}, ""});
  }
}

std::string render(const Finding& finding) {
  const auto& mistake = finding.mistake;
  auto text = printable(finding.file);
  if (mistake.place.line > 0) text += fmt::format(":{}:{}", mistake.place.line, mistake.place.column);
  text += ": ";
  if (!mistake.path.empty()) text += printable(mistake.path) + ": ";
  text += printable(mistake.message) + "\n";
  text += point_at(finding.line, mistake.place);
  if (!mistake.hint.empty()) text += "  " + printable(mistake.hint) + "\n";
  return text;
}

json to_json(const Finding& finding) {
  const auto& mistake = finding.mistake;
  json value = {{"file", finding.file}, {"path", mistake.path}, {"message", mistake.message}};
  if (!mistake.hint.empty()) value["hint"] = mistake.hint;
  if (mistake.place.line > 0) {
    value["line"] = mistake.place.line;
    value["column"] = mistake.place.column;
    value["text"] = finding.line;
  }
  return value;
}

}  // namespace drover::cli
