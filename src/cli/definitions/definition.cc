#include "cli/definitions/definition.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/decode.h"
#include "base/json_text.h"
#include "chronos/job.h"
#include "cli/definitions/advice.h"
#include "cli/definitions/native_file.h"
#include "cli/definitions/privileged.h"
#include "cli/printable.h"
#include "marathon/app.h"
#include "marathon/group.h"
#include "marathon/path.h"
#include "schemas/schemas.h"

namespace drover::cli {
namespace {

using nlohmann::json;

std::tuple<std::size_t, std::size_t, std::string, std::string> place_in_text(const Finding& finding) {
  const auto& mistake = finding.mistake;
  return {mistake.place.line, mistake.place.column, mistake.path, mistake.message};
}

/// Reads one text.
class FileReader {
 public:
  FileReader(const std::string& file, const std::string& folder, std::string_view text, TimePoint now)
      : file_(file), folder_(folder), text_(text), now_(now) {}

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
  /// One definition of a document, and where it stands there.
  struct Part {
    const Document& document;
    std::string path;
    Definition definition;
  };

  void read(const Document& document) {
    if (!document.value.is_array()) return read(document, document.value, "");
    if (document.value.empty()) add({document.place_of(""), "", "the list is empty", kWhatThereIs});
    for (std::size_t i = 0; i < document.value.size(); ++i)
      read(document, document.value[i], fmt::format("({})", i));
  }

  void read(const Document& document, const json& value, const std::string& path) {
    const auto place = document.place_of(path);
    if (!value.is_object())
      return add(
          {place, path, fmt::format("expected a definition, found {}", value.type_name()), kWhatThereIs});
    auto kind = kind_of(value);
    if (!kind) {
      auto& mistake = kind.error();
      mistake.path = path + mistake.path;
      mistake.place = document.place_of(mistake.path);
      return add(std::move(mistake));
    }
    Part part{document, path, {*kind, "", value, file_, place}};
    part.definition.value.erase("kind");
    const auto before = result_.findings.size();
    const auto warnings = result_.warnings.size();
    read(part);
    warn(part, before);
    part.definition.warnings = result_.warnings.size() - warnings;
    if (result_.findings.size() == before) result_.all.push_back(std::move(part.definition));
  }

  void read(Part& part) {
    auto& definition = part.definition;
    switch (definition.kind) {
      case DefinitionKind::kApp:
        definition.name = read_app(part);
        break;
      case DefinitionKind::kGroup:
        definition.name = read_group(part);
        break;
      case DefinitionKind::kTask:
      case DefinitionKind::kGang:
        definition.name = read_native(part, read_task_file(definition.value, folder_));
        break;
      case DefinitionKind::kQueue:
        definition.name = read_native(part, read_queue_file(definition.value));
        break;
      case DefinitionKind::kQuota:
        definition.name = read_native(part, read_quota_file(definition.value));
        break;
      default:
        definition.name = read_job(part);
    }
  }

  /// A mistake of the definition at a path in it.
  void refuse(const Part& part, const std::string& inner, std::string message, std::string hint = "") {
    const auto path = part.path + (inner == "/" ? "" : inner);
    const bool by_name = message.starts_with("unknown field");
    Mistake mistake{by_name ? part.document.place_of_name(path) : part.document.place_of(path), path,
                    std::move(message), std::move(hint)};
    put_in_words(mistake, schema_of(part.definition.kind), pointer_of(inner), part.definition.value);
    add(std::move(mistake));
  }

  void report(const Part& part, const marathon::Refusal& refusal) {
    if (refusal.details.empty()) refuse(part, "", refusal.message, refusal.text);
    for (const auto& detail : refusal.details)
      for (const auto& error : detail.errors) refuse(part, detail.path, error);
  }

  std::string read_app(const Part& part) {
    const auto app = marathon::decode_app(part.definition.value, {});
    if (!app) return report(part, app.error()), "";
    return app->service.id;
  }

  std::string read_group(const Part& part) {
    const auto& value = part.definition.value;
    // Without an id it would be the root: what is not in the file would go.
    if (!value.contains("id") || !value["id"].is_string())
      return refuse(part, "", "a group needs an 'id'", "for some apps without a group, write a list of apps"),
             "";
    const auto id = marathon::absolute_path(value["id"].get<std::string>());
    if (id == "/")
      return refuse(part, "/id", "the root group is not taken: all that is not in the file would go",
                    "give it an id of its own, or write a list of apps"),
             "";
    const auto group = marathon::decode_group(id, value, {}, {});
    if (!group) return report(part, group.error()), "";
    return id;
  }

  std::string read_job(const Part& part) {
    const auto body = to_text(part.definition.value);
    const bool scheduled = part.definition.kind == DefinitionKind::kJob;
    const auto job = chronos::read_job(
        body, scheduled ? chronos::JobKind::kScheduled : chronos::JobKind::kDependent, nullptr, now_);
    if (job) return job->schedule.name;
    for (const auto& error : job.error()) {
      const bool of_schedule = error.path.empty() && error.message.find("chedule") != std::string::npos;
      refuse(part, of_schedule ? "/schedule" : error.path, error.message, error.hint);
    }
    return "";
  }

  std::string read_native(Part& part, NativeFile read) {
    for (const auto& error : read.mistakes) refuse(part, error.path, error.message, error.hint);
    part.definition.value = std::move(read.body);
    // A command may be called so that nothing follows from it: "/".
    return read.name.empty() ? std::string(kind_word(part.definition.kind)) : std::move(read.name);
  }

  /// What is said of it already, from `first` on, is not said again.
  void warn(const Part& part, std::size_t first) {
    const auto kind = part.definition.kind;
    const auto& value = part.definition.value;
    const auto is_told = [&](const std::string& path) {
      return std::any_of(
          result_.findings.begin() + static_cast<std::ptrdiff_t>(first), result_.findings.end(),
          [&](const Finding& finding) { return pointer_of(finding.mistake.path) == pointer_of(path); });
    };
    const auto add_warning = [&](const std::string& inner, Place where, std::string message,
                                 std::string hint) {
      const auto path = part.path + inner;
      if (!is_told(path)) keep(result_.warnings, {where, path, std::move(message), std::move(hint)});
    };
    for (const auto& mistake : privileged_containers(kind, value)) {
      if (mistake.is_certain)
        refuse(part, mistake.path, mistake.message, mistake.hint);
      else
        add_warning(mistake.path, part.document.place_of(part.path + mistake.path), mistake.message,
                    mistake.hint);
    }
    if (is_native(kind)) return;  // they are mistakes there
    for (const auto& [path, meant] : schemas::unknown_fields(schema_of(kind), value))
      add_warning(path, part.document.place_of_name(part.path + path),
                  fmt::format("unknown field '{}'", path.substr(path.rfind('/') + 1)),
                  meant.empty() ? "it has no effect" : fmt::format("did you mean '{}'?", meant));
  }

  void keep(std::vector<Finding>& findings, Mistake mistake) {
    const std::string line(line_of(text_, mistake.place.line));
    findings.push_back({file_, std::move(mistake), line});
  }
  void add(Mistake mistake) { keep(result_.findings, std::move(mistake)); }

  const std::string& file_;
  const std::string& folder_;
  std::string_view text_;
  TimePoint now_;
  Definitions result_;
};

std::string rendered(const Finding& finding, const char* what) {
  const auto& mistake = finding.mistake;
  auto text = printable(finding.file);
  if (mistake.place.line > 0) text += fmt::format(":{}:{}", mistake.place.line, mistake.place.column);
  text += fmt::format(": {}", what);
  if (!mistake.path.empty()) text += printable(mistake.path) + ": ";
  text += printable(mistake.message) + "\n";
  text += point_at(finding.line, mistake.place);
  if (!mistake.hint.empty()) text += "  " + printable(mistake.hint) + "\n";
  return text;
}

}  // namespace

void Definitions::add(Definitions more) {
  std::move(more.all.begin(), more.all.end(), std::back_inserter(all));
  std::move(more.findings.begin(), more.findings.end(), std::back_inserter(findings));
  std::move(more.warnings.begin(), more.warnings.end(), std::back_inserter(warnings));
}

void Definitions::be_strict() {
  std::move(warnings.begin(), warnings.end(), std::back_inserter(findings));
  warnings.clear();
  std::ranges::sort(findings, {}, place_in_text);
}

Definitions read_definitions(const std::string& file, const std::string& folder, std::string_view text,
                             TimePoint now) {
  auto read = FileReader(file, folder, text, now).read();
  std::ranges::sort(read.findings, {}, place_in_text);
  std::ranges::sort(read.warnings, {}, place_in_text);
  return read;
}

void find_doubles(Definitions& definitions) {
  std::map<std::string, const Definition*> seen;
  for (const auto& each : definitions.all) {
    if (runs_once(each.kind)) continue;  // their names need not tell them apart
    const auto [first, fresh] = seen.emplace(fmt::format("{} {}", kind_word(each.kind), each.name), &each);
    if (fresh) continue;
    const auto where = fmt::format("'{}', line {}", first->second->file, first->second->place.line);
    const auto words =
        fmt::format("the {} '{}' stands in {} already", kind_word(each.kind), each.name, where);
    definitions.findings.push_back({each.file, {each.place, "", words, "keep one of the two"}, ""});
  }
}

std::string render(const Finding& finding) {
  return rendered(finding, "");
}

std::string render_warning(const Finding& finding) {
  return rendered(finding, "warning: ");
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
