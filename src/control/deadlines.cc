#include "control/deadlines.h"

#include "control/controller.h"

namespace drover::control {

std::optional<TimePoint> next_deadline(const Outcome& outcome) {
  State changed;
  for (const auto& record : outcome.changed) {
    if (owns_resources(record.state)) changed.active.insert(record.task.id);
    changed.tasks.emplace(record.task.id, record);
  }
  each_table(
      [](const char*, auto& rows, const auto& changes) {
        for (const auto& [id, record] : changes)
          if (record) rows.emplace(id, *record);
      },
      static_cast<Tables<Rows>&>(changed), static_cast<const Tables<Changes>&>(outcome));
  for (const auto& [name, record] : changed.schedules)
    if (const auto at = next_time(record)) changed.schedules_due.insert({*at, name});
  return next_deadline(changed);
}

}  // namespace drover::control
