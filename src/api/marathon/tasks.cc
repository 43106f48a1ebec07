// Instances of apps: to list, and to kill.

#include <algorithm>
#include <iterator>

#include "api/marathon/answers.h"
#include "api/marathon/changes.h"
#include "api/marathon/endpoints.h"
#include "api/marathon/handlers.h"
#include "api/marathon/views.h"
#include "marathon/fields.h"
#include "marathon/path.h"

namespace drover::api::marathon_v2 {

using control::TaskRecord;

namespace {

struct KillOptions {
  bool scale = false;
  bool wipe = false;
  bool force = false;
};

/// More than most take, and what is not written to costs nothing.
constexpr std::size_t kBytesOfInstance = 1000;

/// A refusal when what is asked for contradicts itself.
tl::expected<KillOptions, Response> kill_options(const Services& services, const Request& request) {
  const KillOptions options{flag(request, "scale"), flag(request, "wipe"), flag(request, "force")};
  if (options.scale && options.wipe)
    return tl::unexpected(refuse(services, 400, "You cannot use scale and wipe at the same time."));
  return options;
}

std::string listing(const World& world, const std::vector<const TaskRecord*>& tasks) {
  std::string text;
  text.reserve(tasks.size() * kBytesOfInstance);
  JsonWriter writer(text);
  writer.begin_object();
  writer.key("tasks");
  write_tasks(writer, world, tasks);
  writer.end_object();
  return text;
}

Response endpoints(const Services& services, const World& world,
                   const std::vector<const control::ServiceRecord*>& apps) {
  auto response = answer(services, endpoints_text(world, apps));
  response.content_type = "text/plain";
  return response;
}

/// Kills them; the answer is a deployment when the apps shrink by it, else `killed`.
Response kill(const Services& services, const World& world, const std::vector<const TaskRecord*>& tasks,
              const KillOptions& options, const std::string& killed) {
  control::event::InstancesKilled event;
  std::vector<std::string> apps;
  for (const auto* task : tasks) {
    event.ids.push_back(task->task.id);
    apps.push_back(task->task.origin.name);
  }
  event.scale = options.scale;
  event.force = options.force;
  event.owner = world.caller().user.uid;
  if (options.scale && !options.force)
    if (const auto locks = locks_on(world, apps); !locks.empty()) return locked(services, locks);
  if (event.ids.empty() && !options.scale) return answer(services, killed);
  const auto made = services.decisions->change(event);
  if (!made) return refuse(services, made.error());
  if (!options.scale) return answer(services, killed);
  return deployment_result(services, made->id, made->version);
}

/// Whether the id can be one of a task at all.
bool is_task_id(const std::string& id) {
  return !app_of_task_id(id).empty();
}

Answer write_app_tasks(const Services& services, const Request& request, const World& world) {
  const auto& given = request.parameters.at("id");
  if (const auto group = group_of(given)) {
    if (!world.has_group(*group)) return refuse(services, 404, "Group '" + *group + "' does not exist");
    if (wants_text(request)) return endpoints(services, world, world.services(*group));
    std::vector<const TaskRecord*> tasks;
    for (const auto* record : world.services(*group))
      std::ranges::copy(world.instances(record->target.id), std::back_inserter(tasks));
    return answer(services, listing(world, tasks));
  }
  const auto id = marathon::absolute_path(given);
  const auto* service = world.service(id);
  if (service == nullptr) return refuse(services, 404, "App '" + id + "' does not exist");
  if (wants_text(request)) return endpoints(services, world, {service});
  return answer(services, listing(world, world.instances(id)));
}

Answer write_all_tasks(const Services& services, const Request& request, const World& world) {
  if (wants_text(request)) return endpoints(services, world, world.services());
  const auto wanted = values(request, "status");
  const bool running = wanted.empty() || std::ranges::find(wanted, "running") != wanted.end();
  const bool staging = wanted.empty() || std::ranges::find(wanted, "staging") != wanted.end();
  const bool any = wanted.empty() || (!running && !staging);  // others are ignored
  std::vector<const TaskRecord*> tasks;
  for (const auto* record : world.services())
    for (const auto* task : world.instances(record->target.id)) {
      const bool is_staging = task->state == control::TaskState::kStarting;
      if (any || (is_staging ? staging : running)) tasks.push_back(task);
    }
  return answer(services, listing(world, tasks));
}

}  // namespace

AnswerBeside list_app_tasks(const Services& services, const Request& request) {
  return beside_of(services, request, Scope::kSome, write_app_tasks);
}

AnswerBeside list_tasks(const Services& services, const Request& request) {
  return beside_of(services, request, Scope::kAll, write_all_tasks);
}

Answer kill_app_tasks(const Services& services, const Request& request) {
  const World world(services, *request.caller);
  const auto options = kill_options(services, request);
  if (!options) return options.error();
  const auto id = marathon::absolute_path(request.parameters.at("id"));
  if (world.service(id) == nullptr) return refuse(services, 404, "App '" + id + "' does not exist");
  const auto host = request.query.find("host");
  std::vector<const TaskRecord*> tasks;
  if (host == request.query.end() || host->second == world.host() || host->second == "*" ||
      host->second.empty())
    tasks = world.instances(id);
  const auto killed = listing(world, tasks);
  return kill(services, world, tasks, *options, killed);
}

Answer kill_app_task(const Services& services, const Request& request) {
  const World world(services, *request.caller);
  const auto options = kill_options(services, request);
  if (!options) return options.error();
  auto id = marathon::absolute_path(request.parameters.at("id"));
  const auto& task_id = request.parameters.at("task");
  const auto* task = world.instance(task_id);
  // The Go client makes the app's id of the task's: all before the last dot, '_' for '/'.
  if (task != nullptr && id.starts_with(task->task.origin.name + ".instance-")) id = task->task.origin.name;
  if (world.service(id) == nullptr) return refuse(services, 404, "App '" + id + "' does not exist");
  if (task == nullptr || task->task.origin.name != id)
    return refuse(services, 404, "Task '" + task_id + "' does not exist");
  std::string killed = R"({"task":)";
  JsonWriter writer(killed);
  write_task(writer, world, *task);
  killed += "}";
  return kill(services, world, {task}, *options, killed);
}

Answer kill_tasks(const Services& services, const Request& request) {
  const World world(services, *request.caller);
  const auto options = kill_options(services, request);
  if (!options) return options.error();
  const auto body = body_of(request);
  if (!body) return refuse(services, body.error());
  marathon::Mistakes mistakes;
  marathon::Fields fields(*body, mistakes);
  const auto ids = fields.texts("ids");
  if (body->is_object() && !fields.has("ids")) fields.wrong_type("ids", "error.path.missing");
  if (!mistakes.empty()) return refuse(services, mistakes.refusal());
  std::vector<const TaskRecord*> tasks;
  for (const auto& id : *ids) {
    if (!is_task_id(id))
      return refuse(services, 400,
                    "Invalid task id '" + id + "'. [It is not of the form 'app.instance-UUID._app.1']");
    const auto* task = world.instance(id);  // what has gone already needs no killing
    if (task != nullptr && std::ranges::find(tasks, task) == tasks.end()) tasks.push_back(task);
  }
  const auto killed = listing(world, tasks);
  return kill(services, world, tasks, *options, killed);
}

}  // namespace drover::api::marathon_v2
