#include "control/journal.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/decode.h"
#include "base/json_text.h"
#include "control/stored.h"
#include "placement/rules_json.h"
#include "workload/task_writer.h"

namespace drover::control {
namespace {

constexpr std::string_view kRulesKey = "/rules";
constexpr std::string_view kSequenceKey = "/sequence";
constexpr std::string_view kForgotten = "/forgotten:";
constexpr std::string_view kTemplate = "/template:";

std::string key_of(std::string_view table, const std::string& id) {
  return fmt::format("{}:{}", table, id);
}

/// Reads the entry into the table that its key belongs to; false when it belongs to none.
Result<bool> read_row(Journaled& journaled, const std::string& key, const nlohmann::json& value) {
  bool read = false;
  Status status;
  each_table(
      [&](const char* table, auto& rows) {
        const auto begin = key_of(table, "");
        if (read || !key.starts_with(begin)) return;
        read = true;
        using Record = typename std::remove_reference_t<decltype(rows)>::mapped_type;
        auto record = from_stored<Record>(value, "It");
        if (record)
          rows.emplace(key.substr(begin.size()), std::move(*record));
        else
          status = Failure(record.error());
      },
      static_cast<Tables<Rows>&>(journaled));
  DROVER_CHECK_OK(status);
  return read;
}

/// The template that an entry which cannot be read names, so that it stays beside it; "" when none.
std::string template_named_by(const std::string& text) {
  const auto value = nlohmann::json::parse(text, nullptr, false);
  return value.is_object() && value.contains("template") && value["template"].is_string()
             ? value["template"].get<std::string>()
             : "";
}

}  // namespace

Status JournalReader::read_entry(const std::string& key, const nlohmann::json& value) {
  if (key == kRulesKey) {
    DROVER_TRY(journaled_.rules, placement::decode_rules(value));
  } else if (key == kSequenceKey) {
    DROVER_TRY(const auto number, from_stored<std::uint64_t>(value, "It"));
    journaled_.next_sequence = std::max(journaled_.next_sequence, number);
  } else if (key.starts_with(kForgotten)) {
    journaled_.forgotten.insert(key.substr(kForgotten.size()));
  } else if (key.starts_with(kTemplate)) {
    DROVER_TRY(templates_[key.substr(kTemplate.size())], workload::decode_template(value));
  } else if (key.starts_with('/')) {
    DROVER_TRY(const auto known, read_row(journaled_, key, value));
    if (!known) return fail(ErrorKind::kCorrupt, "A newer Drover wrote it");
  } else {
    DROVER_TRY(auto record, decode_kept_record(value, templates_));
    journaled_.records.push_back(std::move(record));
  }
  return {};
}

Status JournalReader::read(const std::string& key, const std::string& text) {
  const auto what = key == kRulesKey       ? std::string("the queues and quotas")
                    : key.starts_with('/') ? fmt::format("the entry '{}'", key)
                                           : fmt::format("task '{}'", key);
  const auto read =
      parse_json(text, "The entry").and_then([&](const auto& value) { return read_entry(key, value); });
  if (read) return {};
  if (key == kRulesKey || key == kSequenceKey) return Failure(context(read.error(), what));
  journaled_.unread.push_back(context(read.error(), what));
  if (auto named = template_named_by(text); !named.empty())
    journaled_.unread_templates.insert(std::move(named));
  return {};
}

std::string forgotten_key(const std::string& id) {
  return fmt::format("{}{}", kForgotten, id);
}

bool is_kept(const Outcome& outcome) {
  bool any = !outcome.changed.empty() || !outcome.removed.empty() || !outcome.templates.empty() ||
             outcome.added || outcome.rules || std::ranges::any_of(outcome.notices, [](const auto& notice) {
               return std::holds_alternative<notice::Noted>(notice);
             });
  each_table([&](const char*, const auto& rows) { any = any || !rows.empty(); },
             static_cast<const Tables<Changes>&>(outcome));
  return any;
}

JournalChanges changes_of(const Outcome& outcome) {
  JournalChanges changes;
  std::uint64_t newest = 0;
  for (const auto& record : outcome.changed) {
    changes.put.emplace_back(record.task.id, kept_text_of(record));
    newest = std::max(newest, record.sequence);
  }
  for (const auto& [key, task] : outcome.templates)
    if (task)
      changes.put.emplace_back(fmt::format("{}{}", kTemplate, key), workload::template_text(*task));
    else
      changes.removed.push_back(fmt::format("{}{}", kTemplate, key));
  if (outcome.added) changes.put.emplace_back(kSequenceKey, std::to_string(newest + 1));
  if (outcome.rules) changes.put.emplace_back(kRulesKey, to_text(encode(*outcome.rules)));
  changes.removed.insert(changes.removed.end(), outcome.removed.begin(), outcome.removed.end());
  for (const auto& id : outcome.removed) changes.put.emplace_back(forgotten_key(id), "true");
  each_table(
      [&](const char* table, const auto& rows) {
        for (const auto& [id, record] : rows)
          if (record)
            changes.put.emplace_back(key_of(table, id), to_text(nlohmann::json(*record)));
          else
            changes.removed.push_back(key_of(table, id));
      },
      static_cast<const Tables<Changes>&>(outcome));
  return changes;
}

}  // namespace drover::control
