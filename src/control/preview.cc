#include "control/preview.h"

#include <algorithm>

#include "control/planning.h"
#include "control/submission.h"

namespace drover::control {

Result<Preview> preview(const State& state, const std::vector<workload::Task>& tasks, TimePoint now) {
  Draft draft(state, now);
  DROVER_CHECK_OK(submit(draft, tasks));
  auto plan = plan_of(draft);
  const auto& job = job_id(tasks.front());
  Preview preview;
  for (auto& start : plan.starts) {
    if (start.job == job) preview.decisions = std::move(start.decisions);
    std::erase(plan.order, start.job);
  }
  for (const auto& preemption : plan.preemptions)
    for (const auto& victim : preemption.victims)
      if (preemption.job == job)
        for (const auto* member : members_of_job(victim, draft.finder()))
          preview.victims.push_back(member->task.id);
  if (const auto place = std::find(plan.order.begin(), plan.order.end(), job); place != plan.order.end())
    preview.place = static_cast<int>(place - plan.order.begin()) + 1;
  if (const auto reasons = plan.waiting.find(job); reasons != plan.waiting.end())
    preview.reasons = std::move(reasons->second);
  return preview;
}

}  // namespace drover::control
