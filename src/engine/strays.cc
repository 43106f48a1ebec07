#include "engine/strays.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/decode.h"
#include "control/adoption.h"

namespace drover::engine {
namespace {

using Log = std::function<void(const std::string&)>;

Result<control::TaskRecord> record_in(const container::FolderView& folder, const std::string& id) {
  if (folder.record.empty()) return fail(ErrorKind::kNotFound, "its folder does not say what it is");
  DROVER_TRY(const auto value, parse_json(folder.record, "Its record"));
  DROVER_TRY(auto record, control::decode_record(value));
  if (record.task.id == id) return record;
  return fail(ErrorKind::kCorrupt, fmt::format("its folder holds the record of '{}'", record.task.id));
}

Status put_into_quarantine(container::Containerizer& containerizer, const std::string& id, bool runs,
                           const Log& log) {
  if (runs)
    log(fmt::format("Task '{}' runs, and neither the journal nor its folder says what it holds: it is ended",
                    id));
  // What goes on and holds nobody knows what is no company for new tasks.
  if (const auto ended = containerizer.end(id); !ended)
    return Failure(
        context(ended.error(), fmt::format("Task '{}', which the journal does not know, does not end", id)));
  if (const auto moved = containerizer.quarantine(id))
    log(fmt::format("The journal does not know task '{}': its folder is now '{}'", id, *moved));
  else
    log(fmt::format("The journal does not know task '{}', and its folder stays where it is: {}", id,
                    to_string(moved.error())));
  return {};
}

/// The task when it runs, and the journal does not know it, or not where.
Result<std::optional<control::TaskRecord>> inspect(container::Containerizer& containerizer,
                                                   const control::State& state, const std::string& id,
                                                   const Log& log) {
  const auto* known = state.find(id);
  // Where it is was told after its folder was written: the cluster knows that better (recover()).
  if (state.placed_by_others && known != nullptr) return std::nullopt;
  const bool over = known == nullptr ? state.forgotten.contains(id) : control::is_final(known->state);
  if (over) return std::nullopt;
  const auto folder = containerizer.examine(id);
  if (!folder) {
    if (known == nullptr)
      log(fmt::format("'{}' among the tasks' folders is left alone: {}", id, to_string(folder.error())));
    return std::nullopt;
  }
  auto record = record_in(*folder, id);
  if (record && control::agrees(known, *record)) return std::nullopt;
  if (known != nullptr && !(folder->alive && record)) return std::nullopt;
  // What cannot be ended runs, too.
  if (record && (folder->alive || !containerizer.clean(id))) {
    log(
        fmt::format("Task '{}' of '{}' runs, and the journal does not know {}: it goes on, and keeps what it "
                    "holds",
                    id, record->task.owner_name, known == nullptr ? "it" : "where"));
    return std::move(*record);
  }
  DROVER_CHECK_OK(put_into_quarantine(containerizer, id, folder->alive, log));
  return std::nullopt;
}

}  // namespace

Result<Strays> find_strays(container::Containerizer& containerizer, const control::State& state,
                           const Log& log) {
  Strays strays;
  const auto folders = containerizer.known();
  for (const auto& id : state.forgotten)
    if (!state.tasks.contains(id))
      (std::ranges::binary_search(folders, id) ? strays.forgotten : strays.gone).push_back(id);
  for (const auto& id : folders) {
    DROVER_TRY(auto record, inspect(containerizer, state, id, log));
    if (record) strays.running.push_back(std::move(*record));
  }
  return strays;
}

std::optional<Error> quarantine_problem(const container::Containerizer& containerizer) {
  const auto kept = containerizer.quarantined();
  if (kept.names.empty()) return std::nullopt;
  constexpr std::size_t kMostNames = 10;
  const auto shown = std::min(kept.names.size(), kMostNames);
  return Error{
      ErrorKind::kUnavailable,
      fmt::format(
          "The journal does not know {} task{}, whose folder{} in '{}': {}{}", kept.names.size(),
          kept.names.size() == 1 ? "" : "s", kept.names.size() == 1 ? " is" : "s are", kept.folder,
          fmt::join(kept.names.begin(), kept.names.begin() + static_cast<std::ptrdiff_t>(shown), ", "),
          shown < kept.names.size() ? ", …" : ""),
      "take from there what is needed, then remove them", ""};
}

}  // namespace drover::engine
