// What LocalEngine knows of the rules of sharing: shown to all, changed by root.

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "control/sharing.h"
#include "engine/access.h"
#include "engine/local.h"
#include "placement/rules_json.h"

namespace drover::engine {
namespace {

using placement::Queue;
using placement::Rules;
using placement::SubjectKind;

/// The queues that exist: the default one, those that were set, and the parents of these.
std::map<std::string, Queue> all_queues(const Rules& rules) {
  auto queues = rules.queues;
  queues.try_emplace(std::string(placement::kDefaultQueue), Queue{std::string(placement::kDefaultQueue)});
  for (const auto& [path, queue] : rules.queues)
    for (auto slash = path.find('/'); slash != std::string::npos; slash = path.find('/', slash + 1))
      queues.try_emplace(path.substr(0, slash), Queue{path.substr(0, slash)});
  return queues;
}

QueueView view_of(const control::State& state, const Caller& caller, const Queue& queue) {
  QueueView view;
  view.queue = queue;
  view.used = control::used_in(state, queue.path);
  view.usable = caller.is_root() || placement::may_use(state.rules, queue.path, caller.user.name);
  if (!state.positions) return view;
  int place = 0;
  for (const auto& job : state.positions->order) {
    ++place;
    const auto members = control::members_of_job(job, state.finder());
    if (members.empty() || members.front()->task.queue != queue.path) continue;
    const auto& first = *members.front();
    QueueView::Waiting waiting;
    waiting.user = first.task.owner_name;
    waiting.wanted = control::wanted_by(state, first);
    waiting.members = static_cast<int>(members.size());
    waiting.submitted_at = first.submitted_at;
    waiting.place = place;
    if (may_see(caller, first)) {
      waiting.id = job;
      waiting.priority = first.task.priority;
      waiting.reasons = control::waiting_reasons(state, first);
    }
    view.waiting.push_back(std::move(waiting));
  }
  return view;
}

}  // namespace

Later<std::vector<QueueView>> LocalEngine::queues(const Caller& caller) const {
  return [state = snapshot(), caller] {
    std::vector<QueueView> views;
    for (const auto& [path, queue] : all_queues(state->rules))
      views.push_back(view_of(*state, caller, queue));
    return views;
  };
}

std::vector<QuotaView> LocalEngine::quotas(const Caller& caller) const {
  std::vector<QuotaView> views;
  for (const auto& [subject, quota] : state_.rules.quotas) {
    const bool own = subject.kind == SubjectKind::kUser && subject.name == caller.user.name;
    if (own || caller.is_root()) views.push_back({quota, control::used_by(state_, subject)});
  }
  return views;
}

Status LocalEngine::change_rules(const Caller& caller, const std::function<Status(Rules&)>& change) {
  if (!caller.is_root())
    return fail(ErrorKind::kPermissionDenied,
                fmt::format("'{}' may not change queues, quotas and cordons", caller.user.name),
                "only root may");
  auto rules = state().rules;
  DROVER_CHECK_OK(change(rules));
  if (ports_.check_rules) DROVER_CHECK_OK(ports_.check_rules(rules));
  DROVER_CHECK_OK(loop_.change(control::event::RulesChanged{std::move(rules)}));
  return {};
}

Status LocalEngine::set_rules(const Caller& caller, std::vector<Queue> queues,
                              std::vector<placement::Quota> quotas) {
  return change_rules(caller, [&](Rules& rules) -> Status {
    for (auto& queue : queues) rules.queues[std::string(queue.path)] = std::move(queue);
    for (auto& quota : quotas) rules.quotas[placement::Subject(quota.subject)] = std::move(quota);
    return {};
  });
}

Status LocalEngine::remove_queue(const Caller& caller, const std::string& path) {
  return change_rules(caller, [&](Rules& rules) -> Status {
    if (rules.queues.erase(path) > 0) return {};
    return fail(ErrorKind::kNotFound, fmt::format("There is no queue '{}' that was set", path),
                "'drover queue' lists the queues");
  });
}

Status LocalEngine::remove_quota(const Caller& caller, const placement::Subject& subject) {
  return change_rules(caller, [&](Rules& rules) -> Status {
    if (rules.quotas.erase(subject) > 0) return {};
    return fail(ErrorKind::kNotFound, fmt::format("There is no quota of '{}'", placement::to_string(subject)),
                "'drover quota' lists the quotas");
  });
}

Status LocalEngine::set_cordon(const Caller& caller, const std::string& gpu,
                               const std::optional<std::string>& reason) {
  return change_rules(caller, [&](Rules& rules) -> Status {
    const auto is_it = [&](const gpu::Device& device) { return device.uuid == gpu; };
    const bool is_there =
        gpu == placement::kWholeMachine || std::ranges::any_of(state_.machine().inventory.devices, is_it);
    if (reason && !is_there)
      return fail(ErrorKind::kNotFound, fmt::format("There is no GPU '{}'", gpu), "'drover gpus' lists them");
    if (reason)
      rules.cordons[gpu] = {caller.user.name, *reason};
    else if (rules.cordons.erase(gpu) == 0)
      return fail(ErrorKind::kNotFound,
                  fmt::format("{} is not cordoned", gpu.empty() ? "The machine" : "The GPU '" + gpu + "'"),
                  "'drover gpus' shows what is");
    return {};
  });
}

}  // namespace drover::engine
