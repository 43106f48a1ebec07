#include "engine/accounting.h"

#include <fmt/format.h>

#include <algorithm>

namespace drover::engine {
namespace {

/// Its first attempt began then; none when that never ran, or another stretch of the same attempt says so.
std::optional<TimePoint> first_start(const control::Allocation& ended) {
  using enum control::AllocationEnd;
  const bool is_first = control::attempt_of(ended.record) == 0;
  return is_first && ended.end != kPutBack && ended.end != kResized ? ended.record.started_at : std::nullopt;
}

std::string text_of(const std::vector<placement::Grant>& grants) {
  std::string text;
  for (const auto& grant : grants)
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", grant.uuid, grant.milli);
  return text;
}

store::Allocation account_of(const control::Allocation& ended) {
  const auto& record = ended.record;
  const auto& task = record.task;
  store::Allocation account;
  account.owner = task.owner;
  account.user = task.owner_name.empty() ? task.user.name : task.owner_name;
  account.queue = task.queue;
  account.task_id = task.id;
  account.attempt = control::attempt_of(record);
  account.from = ended.from;
  account.until = ended.until;
  account.started = first_start(ended);
  if (account.started) {
    const auto since = std::max(record.submitted_at, task.batch.begin.value_or(record.submitted_at));
    account.waited = std::max(*account.started - since, std::chrono::milliseconds(0));
  }
  account.gpus = text_of(record.gpus);
  account.ending = control::to_string(ended.end);
  if (ended.cause != control::Cause::kNone) account.cause = control::to_string(ended.cause);
  return account;
}

}  // namespace

std::vector<store::Allocation> accounts_of(const control::Outcome& outcome, TimePoint steady) {
  std::vector<store::Allocation> accounts;
  for (const auto& ended : outcome.allocations) {
    accounts.push_back(account_of(ended));
    accounts.back().steady = steady;
  }
  return accounts;
}

std::vector<store::Allocation> accounts_of_active(const control::State& state, Moment now) {
  std::vector<store::Allocation> accounts;
  for (const auto& id : state.active) {
    const auto& record = state.tasks.at(id);
    accounts.push_back(
        account_of({.record = record, .from = control::held_since(record, now), .until = now.wall}));
    accounts.back().ending.clear();
  }
  return accounts;
}

}  // namespace drover::engine
