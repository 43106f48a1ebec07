#include "engine/find_tasks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "control/jobs.h"
#include "engine/access.h"

namespace drover::engine {
namespace {

Failure no_such_task(const std::string& id) {
  return fail(ErrorKind::kNotFound, fmt::format("There is no task '{}'", id),
              "'drover ps -a' lists your tasks");
}

/// The caller's tasks that `id` may mean.
std::vector<const control::TaskRecord*> matches(const control::State& state, const Caller& caller,
                                                const std::string& id) {
  if (const auto exact = state.tasks.find(id); exact != state.tasks.end() && may_see(caller, exact->second))
    return {&exact->second};
  std::vector<const control::TaskRecord*> by_prefix, by_name;
  for (const auto& [full, record] : state.tasks) {
    if (!may_see(caller, record)) continue;
    if (!id.empty() && full.starts_with(id)) by_prefix.push_back(&record);
    if (record.task.name == id) by_name.push_back(&record);
  }
  // A name is mostly meant for what is going on now.
  if (by_name.size() > 1 &&
      std::any_of(by_name.begin(), by_name.end(), [](auto* r) { return !is_final(r->state); }))
    std::erase_if(by_name, [](const auto* record) { return is_final(record->state); });
  return by_name.empty() ? by_prefix : by_name;
}

}  // namespace

Result<const control::TaskRecord*> find_task(const control::State& state, const Caller& caller,
                                             const std::string& id) {
  const auto found = matches(state, caller, id);
  if (found.size() == 1) return found.front();
  if (found.empty()) return no_such_task(id);
  std::vector<std::string> ids;
  for (const auto* record : found) ids.push_back(record->task.id);
  return fail(ErrorKind::kInvalid, fmt::format("'{}' may mean {} tasks", id, ids.size()),
              fmt::format("name one by its id: {}", fmt::join(ids, ", ")));
}

Result<const control::TaskRecord*> find_job(const control::State& state, const Caller& caller,
                                            const std::string& id) {
  const auto found = matches(state, caller, id);
  const auto of_one_gang = [&](const control::TaskRecord* record) {
    return record->task.gang && control::job_id(record->task) == control::job_id(found.front()->task);
  };
  if (found.size() > 1 && std::all_of(found.begin(), found.end(), of_one_gang)) return found.front();
  return find_task(state, caller, id);
}

}  // namespace drover::engine
