// What LocalEngine accepts: tasks, gangs, and plans of them.

#include <fmt/format.h>

#include "control/preview.h"
#include "control/remedies.h"
#include "engine/access.h"
#include "engine/find_tasks.h"
#include "engine/local.h"
#include "placement/part_profile.h"

namespace drover::engine {
namespace {

/// A share that the hardware is to hold is a part of a GPU from here on.
Status choose_part(const placement::Node& machine, workload::Task& task) {
  auto& wanted = task.resources;
  if (wanted.share_by != workload::ShareBy::kMig || !wanted.part.empty()) return {};
  DROVER_TRY(wanted.part, placement::profile_with_share(machine, wanted));
  const auto share = workload::share_of_part(wanted.part);
  if (!share)
    return fail(ErrorKind::kUnsupported, fmt::format("'{}' is no MIG profile that is known", wanted.part), "",
                "/share_by");
  wanted.share = *share;
  return {};
}

}  // namespace

std::string LocalEngine::unused_id() const {
  while (true) {
    auto id = ports_.new_id();
    if (state_.tasks_under(id).empty()) return id;
  }
}

Result<workload::Task> LocalEngine::complete(const Caller& caller,
                                             const workload::TaskRequest& request) const {
  auto task = request.task;
  task.owner = caller.user.uid;
  task.owner_name = caller.user.name;
  task.user = caller.user;
  if (request.begin_in) task.batch.begin = ports_.now() + *request.begin_in;
  for (auto& dependency : task.batch.after) {
    auto found = find_job(state(), caller, dependency.job);
    if (!found) {
      found.error().path = "/after";
      return Failure(std::move(found.error()));
    }
    dependency.job = meant_by(**found, dependency.job);
  }
  if (const auto devices = executor_.devices_of(task); !devices) {
    auto error = devices.error();
    if (error.kind != ErrorKind::kPermissionDenied) error.kind = ErrorKind::kInvalid;
    error.path = "/devices";
    return Failure(std::move(error));
  }
  if (!request.user) return task;
  // The database of users may take its time: it is asked before the request comes here.
  if (!request.found_user) return fail(ErrorKind::kInternal, "Nobody has looked up the user", "", "/user");
  const auto& user = *request.found_user;
  if (!caller.is_root() && user.uid != caller.user.uid)
    return fail(ErrorKind::kPermissionDenied,
                fmt::format("'{}' may not run tasks as '{}'", caller.user.name, user.name),
                "only root may name another user", "/user");
  task.user = user;
  return task;
}

Status LocalEngine::fill_in(std::vector<workload::Task>& tasks,
                            std::span<const workload::TaskRequest> requests) const {
  if (!state().placed_by_others)
    for (auto& task : tasks) DROVER_CHECK_OK(choose_part(state().machine(), task));
  std::vector<control::Unsaid> unsaid;
  for (const auto& request : requests)
    unsaid.push_back({.cpus = !request.says_cpus, .memory = !request.says_memory});
  const auto& now = state();
  control::give_gpu_shares(tasks, unsaid, now.machine(), now.rules, now.gpu_share);
  return {};
}

Result<std::vector<workload::Task>> LocalEngine::complete(const Caller& caller,
                                                          const workload::GangRequest& request) const {
  std::vector<workload::Task> tasks;
  const auto id = unused_id();
  const int size = static_cast<int>(request.members.size());
  for (const auto& member : request.members) {
    const int rank = static_cast<int>(tasks.size());
    auto task = complete(caller, member);
    if (!task) {
      auto error = task.error();
      error.path = fmt::format("/members/{}{}", rank, error.path);
      return Failure(std::move(error));
    }
    task->id = control::member_id(id, rank);
    task->gang = workload::GangMembership{id, rank, size, request.arrangement};
    tasks.push_back(std::move(*task));
  }
  DROVER_CHECK_OK(fill_in(tasks, request.members));
  return tasks;
}

Result<control::TaskRecord> LocalEngine::submit(const Caller& caller, const workload::TaskRequest& request) {
  DROVER_TRY(auto task, complete(caller, request));
  const auto id = task.id = unused_id();
  std::vector tasks = {std::move(task)};
  DROVER_CHECK_OK(fill_in(tasks, {&request, 1}));
  DROVER_CHECK_OK(change(control::event::Submitted{std::move(tasks)}));
  return shown(state().tasks.at(id));
}

Result<std::vector<control::TaskRecord>> LocalEngine::submit_gang(const Caller& caller,
                                                                  const workload::GangRequest& request) {
  DROVER_TRY(auto tasks, complete(caller, request));
  std::vector<std::string> ids;
  for (const auto& task : tasks) ids.push_back(task.id);
  DROVER_CHECK_OK(change(control::event::Submitted{std::move(tasks)}));
  std::vector<control::TaskRecord> records;
  const auto does = doings();
  for (const auto& id : ids) records.push_back(engine::shown(state(), state().tasks.at(id), does));
  return records;
}

Result<std::vector<control::TaskRecord>> LocalEngine::submit_array(const Caller& caller,
                                                                   const workload::ArrayRequest& request) {
  DROVER_TRY(auto task, complete(caller, request.task));
  std::vector one = {std::move(task)};
  DROVER_CHECK_OK(fill_in(one, {&request.task, 1}));
  const auto id = unused_id();
  const auto& [indices, at_once] = request.array;
  std::vector<workload::Task> tasks(indices.size(), one.front());
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    tasks[i].id = control::member_id(id, indices[i]);
    tasks[i].batch.array = {id, indices[i], static_cast<int>(tasks.size()), at_once};
  }
  DROVER_CHECK_OK(change(control::event::Submitted{std::move(tasks)}));
  std::vector<control::TaskRecord> records;
  const auto does = doings();
  for (const int index : indices)
    records.push_back(engine::shown(state(), state().tasks.at(control::member_id(id, index)), does));
  return records;
}

void LocalEngine::image_variants(const Caller& caller, const std::string& image, const std::string& profile,
                                 std::function<void(Result<VariantsView>)> done) {
  images_.variants(caller, image, profile, std::move(done));
}

void LocalEngine::inspect_images(const Caller& caller, const std::vector<std::string>& images,
                                 std::function<void()> done) {
  ImageInspector::Wanted wanted;
  for (const auto& image : images) wanted.emplace(control::ImageName{caller.user.uid, image}, caller.user);
  images_.inspect(std::move(wanted), std::move(done));
}

void LocalEngine::backup(const Caller& caller, std::function<void(Result<std::shared_ptr<UniqueFd>>)> done) {
  if (!caller.is_root())
    return done(
        fail(ErrorKind::kPermissionDenied, "Only root may have a backup: it holds everybody's tasks"));
  loop_.on_journal([this, done = std::move(done)](const store::Journal& journal) -> Work {
    auto copy = std::make_shared<Result<store::Copy>>(journal.copy());
    return [this, copy, done] {
      if (!*copy) return done(Failure(copy->error()));
      copy_on(std::make_shared<store::Copy>(std::move(**copy)), done);
    };
  });
}

/// A piece at a time: what is to be kept has its turn between them.
void LocalEngine::copy_on(const std::shared_ptr<store::Copy>& copy,
                          std::function<void(Result<std::shared_ptr<UniqueFd>>)> done) {
  loop_.on_journal([this, copy, done = std::move(done)](store::Journal&) -> Work {
    const auto complete = copy->step();
    if (!complete) return [done, error = complete.error()] { done(Failure(error)); };
    if (!*complete) return [this, copy, done] { copy_on(copy, done); };
    const auto file = std::make_shared<Result<UniqueFd>>(copy->take());
    return [file, done] {
      if (!*file) return done(Failure(file->error()));
      done(std::make_shared<UniqueFd>(std::move(**file)));
    };
  });
}

/// The id of a task of the caller's that runs.
Result<std::string> LocalEngine::running_task(const Caller& caller, const std::string& id,
                                              const char* hint) const {
  DROVER_TRY(const auto* record, find_task(state_, caller, id));
  if (record->state == control::TaskState::kRunning && executor_.containerizer() != nullptr)
    return record->task.id;
  return fail(ErrorKind::kConflict, fmt::format("The task '{}' is {}", id, control::to_string(record->state)),
              hint);
}

void LocalEngine::exec(const Caller& caller, const std::string& id, ExecRequest request,
                       std::function<void(Result<std::shared_ptr<ExecProcess>>)> done) {
  const auto found = running_task(caller, id, "commands run in tasks that run");
  if (!found) return done(Failure(found.error()));
  executor_.exec(caller.user.uid, *found, std::move(request), std::move(done));
}

void LocalEngine::connect_input(const Caller& caller, const std::string& id,
                                std::function<void(Result<std::shared_ptr<UniqueFd>>)> done) {
  const auto found = running_task(caller, id, "only a task that runs reads");
  if (!found) return done(Failure(found.error()));
  executor_.connect_input(caller.user.uid, *found, std::move(done));
}

Later<Result<PlanView>> LocalEngine::plan(const Caller& caller, workload::GangRequest request) const {
  const bool single = request.members.size() == 1;
  auto tasks = complete(caller, request);
  if (!tasks) return [error = tasks.error()]() -> Result<PlanView> { return Failure(error); };
  if (single) tasks->front().gang.reset();
  if (state_.placed_by_others) return plan_by_others(caller, std::move(*tasks));
  return [plan = plan_here(caller, *tasks)] { return plan; };
}

namespace {

PlanView what_is_wanted(const std::vector<workload::Task>& tasks) {
  PlanView view;
  for (const auto& task : tasks) view.wanted.push_back(task.resources);
  return view;
}

}  // namespace

/// What is asked of whom places: the rest is decided here, as for a submission.
Later<Result<PlanView>> LocalEngine::plan_by_others(const Caller& caller,
                                                    std::vector<workload::Task> tasks) const {
  const auto asks = [&]() -> Result<bool> {
    if (ports_.check_task)
      for (const auto& task : tasks) DROVER_CHECK_OK(ports_.check_task(task, {}));
    if (ports_.forecast) return control::preview_of_handing_over(state_, tasks, ports_.now());
    return fail(ErrorKind::kUnsupported, "This daemon does not know how its tasks are placed");
  }();
  return [caller, tasks = std::move(tasks), asks, ask = ports_.forecast,
          state = snapshot()]() -> Result<PlanView> {
    DROVER_TRY(const bool is_placed, asks);
    auto view = what_is_wanted(tasks);
    if (!is_placed) return view;
    DROVER_TRY(auto forecast, ask(tasks));
    view.starts_now = !forecast.decisions.empty();
    view.members = std::move(forecast.decisions);
    view.victims = static_cast<int>(forecast.ended.size());
    for (const auto& id : forecast.ended)
      if (const auto* record = state->find(id); record != nullptr && may_see(caller, *record))
        view.victim_ids.push_back(id);
    view.place = forecast.place;
    view.reasons = std::move(forecast.reasons);
    for (auto& remedy : forecast.remedies) view.remedies.push_back({.text = std::move(remedy)});
    return view;
  };
}

Result<PlanView> LocalEngine::plan_here(const Caller& caller,
                                        const std::vector<workload::Task>& tasks) const {
  DROVER_TRY(auto preview, control::preview(state_, tasks, ports_.now()));
  auto view = what_is_wanted(tasks);
  view.starts_now = !preview.decisions.empty();
  view.members = std::move(preview.decisions);
  view.victims = static_cast<int>(preview.victims.size());
  for (const auto& id : preview.victims)
    if (may_see(caller, state_.tasks.at(id))) view.victim_ids.push_back(id);
  view.place = preview.place;
  view.reasons = placement::describe(preview.reasons);
  for (auto& remedy : preview.reasons.remedies) view.remedies.push_back({.text = std::move(remedy)});
  if (!view.starts_now && view.victims == 0 && view.remedies.empty())
    view.remedies = control::remedies(state_, tasks, ports_.now());
  return view;
}

}  // namespace drover::engine
