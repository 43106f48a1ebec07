#include "kube/scheduler/disruption_budgets.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/shorten.h"
#include "kube/client/object.h"

namespace drover::kube::scheduler {

Result<PodBudget> read_pod_budget(const nlohmann::json& object) {
  FieldReader reader;
  PodBudget budget;
  const auto& metadata = reader.object(object, "metadata");
  const auto& status = reader.object(object, "status");
  budget.name = reader.name(object);
  budget.name_space = reader.text(metadata, "namespace");
  // One that is not valid selects nothing.
  budget.selector =
      read_selector(reader, reader.object(reader.object(object, "spec"), "selector")).value_or(Selector{});
  const auto allowed = reader.number(status, "disruptionsAllowed").value_or(0);
  budget.allowed = static_cast<int>(std::clamp<std::int64_t>(allowed, 0, std::numeric_limits<int>::max()));
  for (auto& [pod, since] : reader.text_map(status, "disruptedPods")) budget.disrupted.insert(pod);
  DROVER_CHECK_OK(reader.status(fmt::format("the PodDisruptionBudget '{}'", shortened(key_of(object)))));
  return budget;
}

bool BudgetBook::covers(const Entry& entry, const Pod& pod) {
  const auto& budget = entry.budget;
  return !budget.selector.everything() && pod.labels && matches(budget.selector, *pod.labels) &&
         !budget.disrupted.contains(pod.name);
}

BudgetBook::Budgets& BudgetBook::own() {
  if (budgets_.use_count() > 1) budgets_ = std::make_shared<Budgets>(*budgets_);
  return *budgets_;
}

void BudgetBook::count(const Entry& entry, const Member& member, int sign) {
  if (!covers(entry, member.pod)) return;
  auto& containers = own()[entry.place].containers;
  const auto found = containers.try_emplace(member.job, 0).first;
  found->second += sign;
  if (found->second == 0) containers.erase(found);
}

void BudgetBook::show_allowed(const Entry& entry) {
  own()[entry.place].allowed = entry.budget.allowed - static_cast<int>(entry.ending.size());
}

void BudgetBook::put_pod(const std::string& job, const Pod& pod) {
  remove_pod(pod.uid);
  space_of_[pod.uid] = pod.name_space;
  auto& space = spaces_[pod.name_space];
  const auto& member = space.pods.insert_or_assign(pod.uid, Member{job, pod}).first->second;
  for (const auto& [name, entry] : space.entries) count(entry, member, 1);
}

void BudgetBook::remove_pod(const std::string& uid) {
  const auto found = space_of_.find(uid);
  if (found == space_of_.end()) return;
  const auto of = spaces_.find(found->second);
  space_of_.erase(found);
  auto& space = of->second;
  const auto member = space.pods.find(uid);
  for (const auto& [name, entry] : space.entries) count(entry, member->second, -1);
  space.pods.erase(member);
  if (space.pods.empty() && space.entries.empty()) spaces_.erase(of);
}

void BudgetBook::put_budget(PodBudget budget) {
  auto& space = spaces_[budget.name_space];
  const auto [found, added] = space.entries.try_emplace(budget.name);
  auto& entry = found->second;
  if (added) {
    entry.place = budgets_->size();
    own().emplace_back();
  }
  const bool same =
      !added && entry.budget.selector == budget.selector && entry.budget.disrupted == budget.disrupted;
  entry.budget = std::move(budget);
  std::erase_if(entry.ending, [&](const std::string& uid) {
    const auto pod = space.pods.find(uid);
    return pod == space.pods.end() || pod->second.pod.terminating;
  });
  show_allowed(entry);
  if (same) return;
  own()[entry.place].containers.clear();
  for (const auto& [uid, member] : space.pods) count(entry, member, 1);
}

void BudgetBook::remove_budget(std::string_view name_space, std::string_view name) {
  const auto of = spaces_.find(name_space);
  if (of == spaces_.end()) return;
  auto& [entries, pods] = of->second;
  const auto entry = entries.find(name);
  if (entry == entries.end()) return;
  const auto place = entry->second.place;
  entries.erase(entry);
  if (entries.empty() && pods.empty()) spaces_.erase(of);
  auto& budgets = own();
  const auto last = budgets.size() - 1;
  std::swap(budgets[place], budgets[last]);
  budgets.pop_back();
  for (auto& [space_name, space] : spaces_)
    for (auto& [entry_name, other] : space.entries)
      if (other.place == last) other.place = place;
}

void BudgetBook::set_ending(const std::string& uid, bool ending) {
  const auto found = space_of_.find(uid);
  if (found == space_of_.end()) return;
  auto& space = spaces_.at(found->second);
  for (auto& [name, entry] : space.entries) {
    if (ending && covers(entry, space.pods.at(uid).pod))
      entry.ending.insert(uid);
    else
      entry.ending.erase(uid);
    show_allowed(entry);
  }
}

}  // namespace drover::kube::scheduler
