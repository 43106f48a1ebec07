#include "cli/definitions/kind.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "base/decode.h"
#include "base/json_text.h"
#include "base/shorten.h"
#include "cli/printable.h"

namespace drover::cli {
namespace {

using nlohmann::json;

bool has(const json& value, const char* name) {
  const auto found = value.find(name);
  return found != value.end() && !found->is_null();
}

DefinitionKind kind_of_job(const json& value) {
  return has(value, "schedule") || !has(value, "parents") ? DefinitionKind::kJob
                                                          : DefinitionKind::kDependentJob;
}

bool is_of_kubernetes(const json& value) {
  return has(value, "apiVersion") && has(value, "kind");
}

std::optional<DefinitionKind> kind_by_fields(const json& value) {
  if (has(value, "apps") || has(value, "groups"))
    return has(value, "name") && !has(value, "id") ? std::nullopt : std::optional(DefinitionKind::kGroup);
  if (has(value, "schedule") || has(value, "parents")) return kind_of_job(value);
  if (has(value, "id") && (has(value, "cmd") || has(value, "args") || has(value, "container")))
    return DefinitionKind::kApp;
  return std::nullopt;
}

/// What is nearest to something that is nothing.
std::string nearest_kind(const json& value) {
  if (is_of_kubernetes(value))
    return "it looks like an object of Kubernetes, which this command does not take";
  static const std::set<std::string> telling = {"id",      "cmd",  "args",     "container", "apps",
                                                "groups",  "name", "schedule", "kind",      "parents",
                                                "command", "pods", "service"};
  for (const auto& [name, unused] : value.items()) {
    if (telling.contains(name)) continue;
    const auto meant = nearest(name, telling);
    if (!meant.empty()) return fmt::format("did you mean '{}' in place of '{}'?", meant, printable(name));
  }
  if (has(value, "id")) return "it is nearest to an app: that needs 'cmd', 'args' or 'container'";
  if (has(value, "name") && has(value, "command"))
    return "it is nearest to a job: that needs 'schedule' or 'parents'; what runs once has 'kind: task'";
  if (has(value, "cmd") || has(value, "container")) return "it is nearest to an app: that needs 'id'";
  if (has(value, "guarantee") || has(value, "weight"))
    return "it is nearest to a queue: that needs 'kind: queue' and 'queue'";
  if (has(value, "limit"))
    return "it is nearest to a quota: that needs 'kind: quota' and 'user' or 'namespace'";
  if (has(value, "command") || has(value, "gang")) return "it is nearest to a task: that needs 'kind: task'";
  if (has(value, "name"))
    return "it is nearest to a job: that needs 'name', 'command' and 'schedule' or 'parents'";
  return kWhatThereIs;
}

Mistake unknown_kind(const json& kind) {
  static const std::set<std::string> words = {"app", "group", "job", "task", "gang", "queue", "quota"};
  const auto word = kind.is_string() ? kind.get<std::string>() : to_text(kind);
  const auto meant = nearest(word, words);
  return {{},
          "/kind",
          fmt::format("there is no kind '{}' of definition", shortened(word)),
          (meant.empty() ? "" : fmt::format("did you mean '{}'? ", meant)) +
              "it is one of app, group, job, task, gang, queue, quota"};
}

}  // namespace

std::string_view kind_word(DefinitionKind kind) {
  switch (kind) {
    case DefinitionKind::kApp:
      return "app";
    case DefinitionKind::kGroup:
      return "group";
    case DefinitionKind::kTask:
      return "task";
    case DefinitionKind::kGang:
      return "gang";
    case DefinitionKind::kQueue:
      return "queue";
    case DefinitionKind::kQuota:
      return "quota";
    default:
      return "job";
  }
}

std::string_view schema_of(DefinitionKind kind) {
  return runs_once(kind) ? "task" : kind_word(kind);
}

bool runs_once(DefinitionKind kind) {
  return kind == DefinitionKind::kTask || kind == DefinitionKind::kGang;
}

bool is_native(DefinitionKind kind) {
  return runs_once(kind) || kind == DefinitionKind::kQueue || kind == DefinitionKind::kQuota;
}

tl::expected<DefinitionKind, Mistake> kind_of(const json& value) {
  if (!has(value, "kind") || is_of_kubernetes(value)) {
    if (const auto kind = kind_by_fields(value)) return *kind;
    return tl::unexpected(Mistake{{}, "", "this is no definition that is known", nearest_kind(value)});
  }
  const auto& kind = value["kind"];
  if (kind == "app") return DefinitionKind::kApp;
  if (kind == "group") return DefinitionKind::kGroup;
  if (kind == "job") return kind_of_job(value);
  if (kind == "queue") return DefinitionKind::kQueue;
  if (kind == "quota") return DefinitionKind::kQuota;
  if (kind == "gang" && !has(value, "gang"))
    return tl::unexpected(
        Mistake{{}, "/kind", "a gang has the field 'gang'", "write for example gang: {size: 2}"});
  if (kind == "task" || kind == "gang")
    return has(value, "gang") ? DefinitionKind::kGang : DefinitionKind::kTask;
  return tl::unexpected(unknown_kind(kind));
}

}  // namespace drover::cli
