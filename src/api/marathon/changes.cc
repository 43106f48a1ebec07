#include "api/marathon/changes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "api/async.h"
#include "api/marathon/answers.h"
#include "api/marathon/parts.h"
#include "api/transaction.h"
#include "api/workers.h"
#include "control/superseding.h"
#include "marathon/path.h"

namespace drover::api::marathon_v2 {

marathon::Options options_for(const Services& services) {
  marathon::Options options{.strict = services.marathon->strict, .service_ports = {}};
  for (const auto& [id, record] : services.decisions->state().services)
    for (const auto port : services.marathon->service_ports.of(record.target))
      options.service_ports.insert(port);
  return options;
}

asio::awaitable<Users> find_users(const Services& services, uid_t asker,
                                  std::vector<std::optional<std::string>> names) {
  Users users;
  for (auto& name : names)
    if (name && !users.contains(*name)) {
      auto found = co_await services.workers->users.named(*name, asker);
      users.emplace(*name, std::move(found));
    }
  co_return users;
}

namespace {

void add_group_dependencies(const World& world, workload::Service& service,
                            const GroupDependencies& changed) {
  const auto add = [&](const std::vector<std::string>& dependencies) {
    for (const auto& dependency : dependencies)
      if (std::ranges::find(service.dependencies, dependency) == service.dependencies.end())
        service.dependencies.push_back(dependency);
  };
  for (auto group = marathon::parent_path(service.id);; group = marathon::parent_path(group)) {
    const auto known = world.state().groups.find(group);
    if (const auto now = changed.find(group); now != changed.end())
      add(now->second);
    else if (known != world.state().groups.end())
      add(known->second.dependencies);
    if (group == "/") return;
  }
}

bool may_run_as(const World& world, const User& user) {
  return world.caller().is_root() || user.uid == world.caller().user.uid;
}

Failure not_allowed(const World& world, const std::string& name) {
  return fail(ErrorKind::kPermissionDenied,
              fmt::format("'{}' may not run apps as '{}'", world.caller().user.name, name),
              "only root may name another user", "/user");
}

}  // namespace

Status check_definition(const World& world, const workload::Service& wanted,
                        const workload::Service& present) {
  const bool only_scaled =
      wanted.task.user.uid == present.task.user.uid && same_configuration(wanted, present);
  if (may_run_as(world, wanted.task.user) || only_scaled) return {};
  return not_allowed(world, wanted.task.user.name);
}

Status complete(const World& world, marathon::App& app, const control::ServiceRecord* existing,
                const Users& users, const GroupDependencies& groups) {
  auto& service = app.service;
  auto& task = service.task;
  const auto& caller = world.caller();
  if (existing == nullptr) {
    task.owner = caller.user.uid;
    task.owner_name = caller.user.name;
    task.user = caller.user;
  } else {
    task.owner = existing->target.task.owner;
    task.owner_name = existing->target.task.owner_name;
    task.user = existing->target.task.user;
  }
  const bool as_before = existing != nullptr && app.user == marathon::user_of(existing->target);
  if (!as_before && app.user) {
    const auto& found = users.at(*app.user);
    if (!found) return fail(ErrorKind::kInvalid, found.error().message, found.error().hint, "/user");
    if (!may_run_as(world, *found)) return not_allowed(world, *app.user);
    task.user = *found;
  } else if (!as_before) {
    if (!caller.is_root() || task.owner == caller.user.uid) task.user = caller.user;
  }
  // What runs as somebody else because root said so is scaled by its owner, and changed by root alone.
  if (!may_run_as(world, task.user) &&
      (existing == nullptr || !same_configuration(existing->target, service)))
    return not_allowed(world, task.user.name);
  add_group_dependencies(world, service, groups);
  return {};
}

Status check_place(const World& world, const std::string& id) {
  for (auto above = marathon::parent_path(id); above != "/"; above = marathon::parent_path(above))
    if (world.is_taken(above))
      return fail(ErrorKind::kInvalid, fmt::format("'{}' is an app, so nothing can be in it", above), "",
                  "/id");
  const auto& services = world.state().services;
  const auto below = services.lower_bound(id + "/");
  if ((below != services.end() && below->first.starts_with(id + "/")) || world.state().groups.contains(id))
    return fail(ErrorKind::kInvalid, fmt::format("'{}' is a group, so it cannot be an app", id), "", "/id");
  return {};
}

std::vector<std::string> locks_on(const World& world, const std::vector<std::string>& services) {
  std::set<std::string> ids;
  for (const auto& service : services)
    for (const auto& id : world.deployments(service)) ids.insert(id);
  return {ids.begin(), ids.end()};
}

namespace {

/// More than that are not kept for their apps' sake.
constexpr std::size_t kMostKeptGroups = 10'000;

/// The groups that apps are put in are there from then on, also when the last app has gone.
void keep_groups_of(const World& world, control::event::ServicesChanged& change) {
  const auto& known = world.state().groups;
  for (const auto& service : change.put)
    for (auto group = marathon::parent_path(service.id); group != "/"; group = marathon::parent_path(group)) {
      if (known.size() + change.groups.size() >= kMostKeptGroups) return;
      if (known.contains(group)) break;
      change.groups.try_emplace(group, control::GroupRecord{{}, {}, service.task.owner});
    }
}

}  // namespace

bool is_forced(const Request& request, const World& world, const control::event::ServicesChanged& change,
               bool otherwise) {
  const auto found = request.query.find("force");
  if (found == request.query.end() || found->second != "unlessUp") return flag(request, "force", otherwise);
  return control::may_supersede(world.state(), change, {world.now(), world.steady()});
}

tl::expected<control::Made, Response> deploy(const Services& services, const World& world,
                                             control::event::ServicesChanged change) {
  std::vector<std::string> touched = change.removed;
  for (const auto& service : change.put) touched.push_back(service.id);
  auto told = touched;
  if (!change.groups.empty()) told.clear();
  for (const auto& [id, group] : change.groups) told.push_back(id);
  auto& events = services.marathon->events;
  const auto caller = world.caller().user.uid;
  if (!change.force)
    if (const auto locks = locks_on(world, touched); !locks.empty()) {
      events.publish_failed(caller, told, fmt::format("locked by the deployment {}", fmt::join(locks, ", ")));
      return tl::unexpected(locked(services, locks));
    }
  change.owner = world.caller().user.uid;
  keep_groups_of(world, change);
  auto made = services.decisions->change(change);
  if (made) return std::move(*made);
  events.publish_failed(caller, told, made.error().message);
  return tl::unexpected(refuse(services, made.error()));
}

AnswerLater transacted(const Services& services, std::function<Answer()> run) {
  auto answer = co_await in_transaction(*services.decisions, std::move(run));
  if (!answer) co_return refuse(services, answer.error());
  co_return std::move(*answer);
}

}  // namespace drover::api::marathon_v2
