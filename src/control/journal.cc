#include "control/journal.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/decode.h"
#include "control/rules.h"

namespace drover::control {
namespace {

/// Ids of tasks have no slash.
constexpr const char* kRulesKey = "/rules";

std::string text_of(const nlohmann::json& value) {
  return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

Result<Journaled> decode_journal(const std::map<std::string, std::string>& entries) {
  Journaled journaled;
  for (const auto& [key, text] : entries) {
    const auto what = key == kRulesKey ? std::string("the queues and quotas") : fmt::format("task '{}'", key);
    const auto value = parse_json(text, "The entry");
    if (!value) return Failure(context(value.error(), what));
    if (key == kRulesKey) {
      auto rules = decode_rules(*value);
      if (!rules) return Failure(context(rules.error(), what));
      journaled.rules = std::move(*rules);
      continue;
    }
    auto record = decode_record(*value);
    if (!record) return Failure(context(record.error(), what));
    journaled.records.push_back(std::move(*record));
  }
  return journaled;
}

std::vector<std::pair<std::string, std::string>> entries_of(const Outcome& outcome) {
  std::vector<std::pair<std::string, std::string>> entries;
  for (const auto& record : outcome.changed) entries.emplace_back(record.task.id, text_of(encode(record)));
  if (outcome.rules) entries.emplace_back(kRulesKey, text_of(encode(*outcome.rules)));
  return entries;
}

}  // namespace drover::control
