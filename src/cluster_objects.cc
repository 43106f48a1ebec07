#include "cluster_objects.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <boost/asio/post.hpp>
#include <condition_variable>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/users.h"
#include "control/notice.h"
#include "workload/origin.h"

namespace drover {
namespace {

using objects::Kind;

constexpr std::chrono::seconds kPatience{60};

/// Calls touch(thing) for each definition that a notice is about.
template <typename Touch>
struct Concerned {
  Touch touch;

  void operator()(const control::notice::TaskMoved& moved) const {
    const auto& task = moved.record.task;
    if (task.origin.kind == workload::OriginKind::kService) touch(Kind::kApp, task.origin.name);
    if (task.origin.kind == workload::OriginKind::kSchedule) touch(Kind::kSchedule, task.origin.name);
    if (const auto mark = task.labels->find(objects::kMarkLabel); mark != task.labels->end())
      touch(Kind::kJob, mark->second);
  }
  void operator()(const control::notice::HealthChanged& changed) const { touch(Kind::kApp, changed.service); }
  void operator()(const control::notice::DefinitionsChanged& changed) const {
    for (const auto& service : changed.services) touch(Kind::kApp, service);
  }
  void operator()(const control::notice::DeploymentEnded& ended) const {
    for (const auto& [service, before] : ended.deployment.before) touch(Kind::kApp, service);
  }
  void operator()(const control::notice::ScheduleRunEnded& ended) const {
    touch(Kind::kSchedule, ended.schedule);
  }
  void operator()(const auto&) const {}
};

/// Whose namespace it is.
Result<User> user_of_namespace(const std::string& name_space, const pods::PodSettings& settings) {
  const auto nobody = [&] {
    return fail(ErrorKind::kNotFound, fmt::format("The namespace '{}' is no user's", name_space),
                fmt::format("make the object in that of a user whom the daemon knows: {}USER",
                            settings.name_space_prefix));
  };
  if (!name_space.starts_with(settings.name_space_prefix)) return nobody();
  auto name = name_space.substr(settings.name_space_prefix.size());
  if (name.starts_with("uid-")) name.erase(0, 4);
  auto user = find_user(name);
  if (!user) return user.error().kind == ErrorKind::kNotFound ? nobody() : Failure(user.error());
  if (pods::name_space_of(user->name, user->uid, settings) != name_space) return nobody();
  return user;
}

bool is_of_others(const control::State& state, const User& user, const objects::Call& call) {
  if (!call.about) return false;
  const auto& [kind, id] = *call.about;
  if (kind == Kind::kApp) {
    const auto found = state.services.find(id);
    return found != state.services.end() && found->second.target.task.owner != user.uid;
  }
  const auto found = kind == Kind::kSchedule ? state.schedules.find(id) : state.schedules.end();
  return found != state.schedules.end() && found->second.schedule.task.owner != user.uid;
}

}  // namespace

ClusterObjects::ClusterObjects(kube::Api& api, Daemon& daemon, pods::PodSettings settings)
    : daemon_(daemon),
      settings_(std::move(settings)),
      keeper_(api, {.ask = [this](const auto& user, const auto& call,
                                  const auto& stop) { return ask(user, call, stop); },
                    .user_of = [this](const auto& name) { return user_of_namespace(name, settings_); },
                    .log = [](const auto& line) { spdlog::warn("{}", line); }}) {
  notices_ = daemon_.engine().watch([this](const control::Notice& notice) {
    const auto touch = [this](Kind kind, const std::string& id) { keeper_.touch(objects::thing(kind, id)); };
    std::visit(Concerned<decltype(touch)>{touch}, notice);
  });
}

Result<objects::Answer> ClusterObjects::ask(const User& user, const objects::Call& call,
                                            const std::stop_token& stop) {
  struct Waiting {
    std::mutex mutex;
    std::condition_variable_any came;
    std::optional<api::Response> response;
    bool of_others = false;
  };
  const auto waiting = std::make_shared<Waiting>();
  auto body = call.body.is_null() ? std::string()
                                  : call.body.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  boost::asio::post(daemon_.context(),
                    [&daemon = daemon_, user, call, body = std::move(body), waiting]() mutable {
                      const bool of_others = is_of_others(daemon.engine().state(), user, call);
                      daemon.server().ask({user}, call.method, call.target, std::move(body),
                                          [waiting, of_others](api::Response response) {
                                            const std::lock_guard lock(waiting->mutex);
                                            waiting->of_others = of_others;
                                            waiting->response = std::move(response);
                                            waiting->came.notify_all();
                                          });
                    });
  std::unique_lock lock(waiting->mutex);
  if (!waiting->came.wait_for(lock, stop, kPatience, [&] { return waiting->response.has_value(); }))
    return fail(ErrorKind::kTimeout, "The daemon has not answered", "it is tried again");
  auto value = nlohmann::json::parse(waiting->response->body, nullptr, false);
  if (value.is_discarded()) value = nullptr;
  return objects::Answer{waiting->response->status, std::move(value), waiting->of_others};
}

}  // namespace drover
