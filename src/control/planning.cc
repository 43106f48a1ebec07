#include "control/planning.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace drover::control {
namespace {

/// Not the lowest that is free: what has just ended may leave its port busy for a while.
int free_port(const Draft& draft, std::uint64_t sequence, const std::set<int>& given) {
  constexpr int kPorts = kLastGangPort - kFirstGangPort + 1;
  auto taken = given;
  for (const auto& id : draft.base().active) taken.insert(draft.find(id)->gang_port);
  const int begin = static_cast<int>(sequence % kPorts);
  for (int i = 0; i < kPorts; ++i)
    if (const int port = kFirstGangPort + (begin + i) % kPorts; !taken.contains(port)) return port;
  return kFirstGangPort + begin;
}

void start(Draft& draft, const placement::Start& start, std::set<int>& ports) {
  const auto members = members_of_job(start.job, draft.finder());
  const auto& first = *members.front();
  int port = 0;
  if (first.task.gang) ports.insert(port = free_port(draft, first.sequence, ports));
  for (std::size_t rank = 0; rank < members.size(); ++rank) {
    const auto id = members[rank]->task.id;
    auto& record = draft.change(id);
    const auto& decision = start.decisions[rank];
    record.state = TaskState::kStarting;
    record.reason.clear();
    record.gpus = decision.gpus;
    record.cpus = decision.cpus;
    record.nics = decision.nics;
    record.gang_port = port;
    draft.act(action::Launch{id});
  }
}

void preempt(Draft& draft, const std::string& victim, const workload::Task& winner) {
  for (const auto* member : members_of_job(victim, draft.finder())) {
    const auto id = member->task.id;
    auto& record = draft.change(id);
    record.preempted = true;
    record.state = TaskState::kStopping;
    record.reason = winner.priority > record.task.priority
                        ? "preempted by work of higher priority"
                        : fmt::format("preempted: the queue '{}' takes back what it had lent", winner.queue);
    draft.act(action::Stop{id, false});
  }
}

}  // namespace

placement::Plan plan_of(const Draft& draft) {
  auto cluster = draft.cluster();
  return placement::plan(cluster, draft.rules(), draft.waiting(), draft.running(), draft.now());
}

void carry_out(Draft& draft, placement::Plan plan) {
  std::set<int> ports;
  for (const auto& one : plan.starts) {
    start(draft, one, ports);
    std::erase(plan.order, one.job);
  }
  for (const auto& preemption : plan.preemptions) {
    const auto winners = members_of_job(preemption.job, draft.finder());
    for (const auto& victim : preemption.victims) preempt(draft, victim, winners.front()->task);
  }
  draft.set_standing({std::move(plan.waiting), std::move(plan.order)});
}

}  // namespace drover::control
