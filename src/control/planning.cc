#include "control/planning.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "control/ending.h"
#include "control/holds.h"
#include "placement/preemption_words.h"

namespace drover::control {
namespace {

constexpr int kNoPort = 0;

void start(Draft& draft, const placement::Start& start, PortsInUse& ports) {
  const auto members = members_of_job(start.job, draft.finder());
  const auto& first = *members.front();
  // Where every port is taken, the members do without: nobody else can be told of one either.
  const int port = first.task.gang ? ports.take_any(first.sequence).value_or(kNoPort) : kNoPort;
  for (std::size_t rank = 0; rank < members.size(); ++rank) {
    const auto id = members[rank]->task.id;
    auto& record = draft.change(id);
    const auto& decision = start.decisions[rank];
    record.state = TaskState::kStarting;
    record.reason.clear();
    record.retry_at.reset();
    record.gpus = decision.gpus;
    record.cpus = decision.cpus;
    record.nics = decision.nics;
    record.ports = ports.take_for(record.task.network, record.sequence);
    record.gang_port = port;
    draft.act(action::Launch{id});
  }
}

/// A framework cannot see what takes the place of its task, unless that is its own user's.
std::string why_preempted(const workload::Task& victim, const workload::Task& winner) {
  const auto lender = winner.priority > victim.priority ? std::nullopt : std::optional(winner.queue);
  const bool may_know = victim.owner == 0 || victim.owner == winner.owner;
  return placement::why_preempted(lender,
                                  may_know && !restarts_after_preemption(victim) ? job_id(winner) : "");
}

void preempt_job(Draft& draft, const std::string& victim, const workload::Task& winner) {
  for (const auto* member : members_of_job(victim, draft.finder()))
    preempt(draft, member->task.id, why_preempted(member->task, winner));
}

void start_all(Draft& draft, placement::Plan& plan) {
  PortsInUse ports(draft);
  // Ports that are named go to nobody else, in whatever order the plan starts its jobs.
  for (const auto& one : plan.starts)
    for (const auto* member : members_of_job(one.job, draft.finder())) ports.take_named(member->task.network);
  for (const auto& one : plan.starts) {
    start(draft, one, ports);
    std::erase(plan.order, one.job);
  }
}

}  // namespace

QueuePlan plan_of(const Draft& draft) {
  auto [jobs, behind, held_back] = draft.waiting();
  // To look at everything that runs would be for nothing.
  if (jobs.empty()) return {{.order = std::move(held_back)}, {}};
  Holds holds(draft);
  std::map<std::string, placement::Reasons> held;
  std::ranges::sort(jobs, {}, &placement::Job::sequence);
  std::erase_if(jobs, [&](const placement::Job& job) {
    auto why = holds.claim(members_of_job(job.id, draft.finder()));
    if (why) held[job.id] = {0, {{placement::Dimension::kHeld, 0, std::move(*why)}}, {}};
    return why.has_value();
  });
  auto cluster = draft.cluster();
  auto plan = placement::plan(cluster, draft.rules(), std::move(jobs), draft.running(), draft.now());
  for (const auto& [id, reasons] : held) plan.order.push_back(id);
  plan.waiting.merge(held);
  QueuePlan whole{std::move(plan), {}};
  for (auto& [sequence, id] : behind) {
    whole.order.push_back(std::move(id));
    whole.behind.push_back(sequence);
  }
  std::ranges::move(held_back, std::back_inserter(whole.order));
  return whole;
}

void carry_out(Draft& draft, QueuePlan plan) {
  if (!plan.starts.empty()) start_all(draft, plan);
  for (const auto& preemption : plan.preemptions) {
    const auto winners = members_of_job(preemption.job, draft.finder());
    for (const auto& victim : preemption.victims) preempt_job(draft, victim, winners.front()->task);
  }
  draft.set_positions({std::move(plan.waiting), std::move(plan.order), std::move(plan.behind)});
}

}  // namespace drover::control
