#include "engine/find_tasks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <span>
#include <utility>

#include "control/jobs.h"
#include "engine/access.h"

namespace drover::engine {
namespace {

Failure no_such_task(const std::string& id) {
  return fail(ErrorKind::kNotFound, fmt::format("There is no task '{}'", id),
              "'drover ps -a' lists your tasks");
}

/// Of jobs with one name the newest that goes on is meant, or the newest.
bool is_meant_before(const control::TaskRecord* one, const control::TaskRecord* other) {
  const auto rank_of = [](const control::TaskRecord* record) {
    return std::pair(!is_final(record->state), record->sequence);
  };
  return rank_of(one) > rank_of(other);
}

/// The tasks of that name that were submitted together and are meant, of the caller's own if he has any; the
/// first member of a gang is the first of them.
std::vector<const control::TaskRecord*> submission_of(std::vector<const control::TaskRecord*> named,
                                                      uid_t caller) {
  const auto is_own = [&](const auto* record) { return record->task.owner == caller; };
  if (std::ranges::any_of(named, is_own)) std::erase_if(named, std::not_fn(is_own));
  const auto submission = control::submission_id((*std::ranges::min_element(named, is_meant_before))->task);
  std::erase_if(named,
                [&](const auto* record) { return control::submission_id(record->task) != submission; });
  std::ranges::sort(named, {}, &control::TaskRecord::sequence);
  return named;
}

/// The caller's tasks that `id` may mean: one, those of one submission, or those of whose ids it is the
/// beginning.
std::vector<const control::TaskRecord*> matches(const control::State& state, const Caller& caller,
                                                const std::string& id) {
  if (const auto exact = state.tasks.find(id); exact != state.tasks.end() && may_see(caller, exact->second))
    return {&exact->second};
  std::vector<const control::TaskRecord*> by_prefix, by_name;
  for (const auto& [full, record] : state.tasks) {
    if (id.empty() || !may_see(caller, record)) continue;
    if (full.starts_with(id)) by_prefix.push_back(&record);
    if (record.task.name == id || record.task.origin.task_id == id) by_name.push_back(&record);
  }
  return by_name.empty() ? by_prefix : submission_of(std::move(by_name), caller.user.uid);
}

bool are_one_submission(const std::vector<const control::TaskRecord*>& records) {
  return std::ranges::all_of(records, [&](const auto* record) {
    return control::submission_id(record->task) == control::submission_id(records.front()->task);
  });
}

}  // namespace

Result<const control::TaskRecord*> find_task(const control::State& state, const Caller& caller,
                                             const std::string& id) {
  const auto found = matches(state, caller, id);
  if (found.empty()) return no_such_task(id);
  if (found.size() == 1 || (are_one_submission(found) && found.front()->task.name == id))
    return found.front();
  constexpr std::size_t kMostNamed = 20;
  std::vector<std::string> known;
  for (const auto* record : std::span(found).first(std::min(found.size(), kMostNamed)))
    known.push_back(fmt::format("{} ({}, {})", record->task.id, record->task.name, to_string(record->state)));
  return fail(ErrorKind::kInvalid, fmt::format("'{}' may mean {} tasks", id, found.size()),
              fmt::format("write more of the id: {}{}", fmt::join(known, ", "),
                          found.size() > kMostNamed ? ", …" : ""));
}

Result<const control::TaskRecord*> find_job(const control::State& state, const Caller& caller,
                                            const std::string& id) {
  const auto found = matches(state, caller, id);
  if (!found.empty() && are_one_submission(found)) return found.front();
  return find_task(state, caller, id);
}

const std::string& meant_by(const control::TaskRecord& found, const std::string& id) {
  return id == found.task.id ? found.task.id : control::submission_id(found.task);
}

}  // namespace drover::engine
