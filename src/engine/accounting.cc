#include "engine/accounting.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace drover::engine {
namespace {

std::string text_of(const std::vector<placement::Grant>& grants) {
  std::string text;
  for (const auto& grant : grants)
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", grant.uuid, grant.milli);
  return text;
}

/// Without how it ended.
store::Allocation account_of(const control::TaskRecord& record, TimePoint from, TimePoint until) {
  const auto& task = record.task;
  store::Allocation account;
  account.owner = task.owner;
  account.user = task.owner_name.empty() ? task.user.name : task.owner_name;
  account.queue = task.queue;
  account.task_id = task.id;
  account.attempt = control::attempt_of(record);
  account.from = from;
  account.until = until;
  account.gpus = text_of(record.gpus);
  if (account.attempt > 0 || !record.started_at) return account;
  const auto since = std::max(record.submitted_at, task.batch.begin.value_or(record.submitted_at));
  account.started = record.started_at;
  account.waited = std::max(*account.started - since, std::chrono::milliseconds(0));
  return account;
}

store::Allocation account_of(const control::Allocation& ended, TimePoint steady) {
  using enum control::AllocationEnd;
  auto account = account_of(ended.record, ended.from, ended.until);
  account.steady = steady;
  account.ending = control::to_string(ended.end);
  if (ended.gpu_seconds_used)
    account.used = std::chrono::milliseconds(std::llround(*ended.gpu_seconds_used * 1000));
  if (ended.cause != control::Cause::kNone) account.cause = control::to_string(ended.cause);
  // Of one attempt, what comes last says when it began.
  if (ended.end != kPutBack && ended.end != kResized) return account;
  account.started.reset();
  account.waited.reset();
  return account;
}

}  // namespace

std::vector<store::Allocation> accounts_of(const control::Outcome& outcome, TimePoint steady) {
  std::vector<store::Allocation> accounts;
  for (const auto& ended : outcome.allocations) accounts.push_back(account_of(ended, steady));
  return accounts;
}

std::vector<store::Allocation> accounts_of_active(const control::State& state, std::optional<uid_t> owner,
                                                  Moment now) {
  std::vector<store::Allocation> accounts;
  for (const auto& id : state.active)
    if (const auto& record = state.tasks.at(id); !owner || record.task.owner == *owner)
      accounts.push_back(account_of(record, control::held_since(record, now), now.wall));
  return accounts;
}

}  // namespace drover::engine
