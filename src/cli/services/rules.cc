#include "cli/services/rules.h"

#include <algorithm>
#include <set>

#include "base/units.h"
#include "cli/services/fields.h"
#include "cli/sharing_notes.h"

namespace drover::cli {
namespace {

using nlohmann::json;

/// The fields of a rule itself, of one that the API lists.
json rule_in(const json& listed, const json& wanted) {
  auto rule = json::object();
  for (const auto* field : {"queue", "user", "namespace", "limit", "guarantee", "weight", "users", "timeout",
                            "idle_timeout", "max_priority"})
    if (listed.contains(field) || wanted.contains(field)) rule[field] = listed.value(field, json());
  return rule;
}

/// With sizes as people write them.
json with_sizes(json rule) {
  for (const auto* amounts : {"limit", "guarantee"})
    if (auto found = rule.find(amounts); found != rule.end() && found->is_object())
      if (auto memory = found->find("memory"); memory != found->end() && memory->is_number_unsigned())
        *memory = format_bytes(memory->get<std::uint64_t>());
  return rule;
}

/// What a line that begins with the name says after it.
std::string without_name(const std::string& line, const std::string& name) {
  return line.substr(std::min(line.size(), name.size() + 2));
}

}  // namespace

Change change_of_rule(const Definition& definition, const std::vector<json>& existing) {
  const auto& wanted = definition.value;
  const bool is_queue = definition.kind == DefinitionKind::kQueue;
  Change change{definition.name, definition.kind, ChangeKind::kNew, {}, wanted};
  const auto is_it = [&](const json& rule) {
    for (const auto* field : {"queue", "user", "namespace"})
      if (wanted.contains(field)) return rule.value(field, json()) == wanted[field];
    return false;
  };
  const auto found = std::ranges::find_if(existing, is_it);
  if (found == existing.end()) {
    change.words = {without_name(is_queue ? queue_line(wanted) : quota_line(wanted), definition.name)};
    return change;
  }
  const auto before = rule_in(*found, wanted);
  if (before == rule_in(wanted, before)) {
    change.kind = ChangeKind::kUnchanged;
    return change;
  }
  change.kind = ChangeKind::kChanged;
  change.words = differences(with_sizes(before), with_sizes(wanted));
  if (change.words.empty()) change.words = differences(before, wanted);  // sizes that are nearly the same
  return change;
}

Result<std::vector<json>> list_rules(const Client& client, const std::string& what) {
  DROVER_TRY(const auto answer, client.get("/v1/" + what));
  return list_in(answer, what.c_str()).get<std::vector<json>>();
}

void report_doubts(const Context& context, const Client& client, const std::vector<json>& queues,
                   const std::vector<json>& quotas) {
  if (!queues.empty())
    if (const auto nodes = client.get("/v1/nodes"))
      for (const auto& queue : queues)
        for (const auto& sentence : guarantees_too_large(queue, list_in(*nodes, "nodes"))) report(sentence);
  if (!context.endpoint.url.empty()) return;  // a machine's users are known to the machine alone
  std::set<std::string> users;
  for (const auto& queue : queues) users.merge(queue.value("users", std::set<std::string>()));
  for (const auto& quota : quotas)
    if (quota.contains("user")) users.insert(text_in(quota, "user"));
  for (const auto& sentence : unknown_users({users.begin(), users.end()})) report(sentence);
}

}  // namespace drover::cli
