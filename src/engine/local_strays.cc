// Task folders that the journal does not know: it was moved away, lost its last entries, or is an older one.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/decode.h"
#include "control/adoption.h"
#include "engine/local.h"

namespace drover::engine {
namespace {

Result<control::TaskRecord> record_in(const container::FolderView& folder, const std::string& id) {
  if (folder.record.empty()) return fail(ErrorKind::kNotFound, "its folder does not say what it is");
  DROVER_TRY(const auto value, parse_json(folder.record, "Its record"));
  DROVER_TRY(auto record, control::decode_record(value));
  if (record.task.id == id) return record;
  return fail(ErrorKind::kCorrupt, fmt::format("its folder holds the record of '{}'", record.task.id));
}

Error unread_entries(const std::vector<Error>& unread) {
  const auto count = unread.size();
  return {ErrorKind::kCorrupt,
          fmt::format("{} entr{} of the journal cannot be read and {} kept as {}: {}{}", count,
                      count == 1 ? "y" : "ies", count == 1 ? "is" : "are", count == 1 ? "it is" : "they are",
                      unread.front().message, count == 1 ? "" : ", …"),
          "a newer Drover may read them; 'drover backup' makes a copy with all of them", ""};
}

}  // namespace

Result<std::vector<control::TaskRecord>> LocalEngine::look_for_strays() {
  std::vector<control::TaskRecord> running;
  const auto known = containerizer_->known();
  for (const auto& id : state_.forgotten) {
    if (state_.tasks.contains(id)) continue;
    if (std::ranges::binary_search(known, id))
      perform(control::action::Forget{id});
    else
      gone_.push_back(id);
  }
  for (const auto& id : known) {
    DROVER_TRY(auto record, look_for_stray(id));
    if (record) running.push_back(std::move(*record));
  }
  for (const auto& problem : problems()) ports_.log(to_string(problem));
  return running;
}

Result<std::optional<control::TaskRecord>> LocalEngine::look_for_stray(const std::string& id) {
  const auto* known = state_.find(id);
  const bool over = known == nullptr ? state_.forgotten.contains(id) : control::is_final(known->state);
  if (over) return std::nullopt;
  const auto folder = containerizer_->examine(id);
  if (!folder) {
    if (known == nullptr)
      ports_.log(
          fmt::format("'{}' among the tasks' folders is left alone: {}", id, to_string(folder.error())));
    return std::nullopt;
  }
  auto record = record_in(*folder, id);
  if (record && control::agrees(known, *record)) return std::nullopt;
  if (known != nullptr && !(folder->alive && record)) return std::nullopt;
  // What cannot be ended runs, too.
  if (record && (folder->alive || !containerizer_->clean(id))) {
    ports_.log(
        fmt::format("Task '{}' of '{}' runs, and the journal does not know {}: it goes on, and keeps what "
                    "it holds",
                    id, record->task.owner_name, known == nullptr ? "it" : "where"));
    return std::move(*record);
  }
  DROVER_CHECK_OK(put_into_quarantine(id, folder->alive));
  return std::nullopt;
}

Status LocalEngine::put_into_quarantine(const std::string& id, bool runs) {
  if (runs)
    ports_.log(fmt::format(
        "Task '{}' runs, and neither the journal nor its folder says what it holds: it is ended", id));
  // What goes on and holds nobody knows what is no company for new tasks.
  if (const auto ended = containerizer_->end(id); !ended)
    return Failure(
        context(ended.error(), fmt::format("Task '{}', which the journal does not know, does not end", id)));
  if (const auto moved = containerizer_->quarantine(id))
    ports_.log(fmt::format("The journal does not know task '{}': its folder is now '{}'", id, *moved));
  else
    ports_.log(fmt::format("The journal does not know task '{}', and its folder stays where it is: {}", id,
                           to_string(moved.error())));
  return {};
}

std::vector<Error> LocalEngine::problems() const {
  auto problems = ports_.problems ? ports_.problems() : std::vector<Error>{};
  if (auto problem = disk_room_.problem()) problems.push_back(std::move(*problem));
  if (broken_) problems.push_back(*broken_);
  if (!state_.unread.empty()) problems.push_back(unread_entries(state_.unread));
  if (!containerizer_) return problems;
  const auto kept = containerizer_->quarantined();
  if (kept.names.empty()) return problems;
  constexpr std::size_t kMostNames = 10;
  const auto shown = std::min(kept.names.size(), kMostNames);
  problems.push_back(
      {ErrorKind::kUnavailable,
       fmt::format(
           "The journal does not know {} task{}, whose folder{} in '{}': {}{}", kept.names.size(),
           kept.names.size() == 1 ? "" : "s", kept.names.size() == 1 ? " is" : "s are", kept.folder,
           fmt::join(kept.names.begin(), kept.names.begin() + static_cast<std::ptrdiff_t>(shown), ", "),
           shown < kept.names.size() ? ", …" : ""),
       "take from there what is needed, then remove them", ""});
  return problems;
}

}  // namespace drover::engine
