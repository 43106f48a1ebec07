#pragma once

// The rows that the state keeps besides its tasks: each kind is a table of records by id, and stands here
// once. A Rows is a table as it is, an Overlay is one with changes laid over it, Changes are what to write
// down. Pure.

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "base/shared_map.h"
#include "control/executor_record.h"
#include "control/framework_record.h"
#include "control/schedule_record.h"
#include "control/service_record.h"

namespace drover::control {

template <typename Record>
using Rows = SharedMap<std::string, Record>;

template <typename Record>
using Changes = std::map<std::string, std::optional<Record>>;  ///< none: the row is removed

/// The rows outlive it.
template <typename Record>
class Overlay {
 public:
  Overlay() = default;
  explicit Overlay(const Rows<Record>& rows) : rows_(&rows) {}

  const Record* find(const std::string& id) const {
    if (const auto changed = changes_.find(id); changed != changes_.end())
      return changed->second ? &*changed->second : nullptr;
    const auto found = rows_->find(id);
    return found == rows_->end() ? nullptr : &found->second;
  }
  /// The row is there.
  Record& change(const std::string& id) {
    if (const auto changed = changes_.find(id); changed != changes_.end()) return *changed->second;
    return *changes_.emplace(id, rows_->at(id)).first->second;
  }
  Record& put(const std::string& id, Record record) {
    return *changes_.insert_or_assign(id, std::move(record)).first->second;
  }
  void remove(const std::string& id) { changes_.insert_or_assign(id, std::nullopt); }

  /// Calls visit(id, record) for every row, by id. The visitor changes nothing.
  template <typename Visit>
  void each(Visit visit) const {
    each_below("", visit);
  }
  /// The same for those whose ids begin so; looks at no others.
  template <typename Visit>
  void each_below(const std::string& begin, Visit visit) const {
    auto changed = changes_.lower_bound(begin);
    const auto visit_changed_before = [&](const std::string* id) {
      for (; changed != changes_.end() && changed->first.starts_with(begin); ++changed) {
        if (id != nullptr && changed->first >= *id) return;
        if (changed->second) visit(changed->first, *changed->second);
      }
    };
    for (auto row = rows_->lower_bound(begin); row != rows_->end() && row->first.starts_with(begin); ++row) {
      visit_changed_before(&row->first);
      if (changed == changes_.end() || changed->first != row->first) visit(row->first, row->second);
    }
    visit_changed_before(nullptr);
  }

  const Changes<Record>& changes() const { return changes_; }
  Changes<Record> take() && { return std::move(changes_); }

 private:
  const Rows<Record>* rows_ = nullptr;
  Changes<Record> changes_;
};

template <template <typename> typename Kind>
struct Tables {
  Kind<ServiceRecord> services;  ///< by absolute path
  Kind<GroupRecord> groups;      ///< by absolute path; only those that were defined as such
  Kind<Deployment> deployments;  ///< that are under way
  Kind<FrameworkRecord> frameworks;
  Kind<FrameworkTask> framework_tasks;  ///< by framework_task_key()
  Kind<ExecutorRecord> executors;       ///< by executor_key()
  Kind<ScheduleRecord> schedules;       ///< by name
};

/// Calls visit("/service", services of each given one …), and so on for every table. The first argument
/// begins the keys of its rows in the journal.
template <typename Visit, typename... T>
void each_table(Visit visit, T&&... tables) {
  visit("/service", tables.services...);
  visit("/group", tables.groups...);
  visit("/deployment", tables.deployments...);
  visit("/framework", tables.frameworks...);
  visit("/framework_task", tables.framework_tasks...);
  visit("/executor", tables.executors...);
  visit("/schedule", tables.schedules...);
}

}  // namespace drover::control
