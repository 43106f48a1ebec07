#pragma once

// What Marathon's clients see of apps, instances, deployments and groups, as JSON. Pure.

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "api/marathon/world.h"
#include "base/json_writer.h"

namespace drover::api::marathon_v2 {

/// What is shown with an app besides its definition.
struct Embed {
  bool counts = true;
  bool deployments = true;
  bool tasks = false;
  bool last_failure = false;
  bool readiness = false;
  bool task_stats = false;

  /// "apps.tasks", "app.tasks": clients use either, whether they ask for one app or for many.
  static Embed of_apps(const std::vector<std::string>& names);
  /// "group.apps.tasks"
  static Embed of_group(const std::vector<std::string>& names);
  static Embed all();
};

/// The app as text, composed of its definition and of what is embedded.
std::string app_text(const World& world, const control::ServiceRecord& record, const Embed& embed);

/// {"apps": [the apps]}, or with another name than "apps".
std::string apps_text(const World& world, const std::vector<const control::ServiceRecord*>& records,
                      const Embed& embed, std::string_view name);
/// The app of app_text(), where there may be thousands in an answer.
void write_app(JsonWriter& writer, const World& world, const control::ServiceRecord& record,
               const Embed& embed);
/// Why an instance ended, as Mesos tells Marathon: "Command exited with status 3".
std::string failure_message(const std::string& reason);
/// [{"ipAddress", "protocol"}] where an instance that has started is reached: the machine's `ip`, as Mesos
/// tells of tasks on the network of their agent.
nlohmann::json ip_addresses(const control::TaskRecord& task, const std::string& ip);
/// One instance of an app.
void write_task(JsonWriter& writer, const World& world, const control::TaskRecord& task);
/// A list of them.
void write_tasks(JsonWriter& writer, const World& world,
                 const std::vector<const control::TaskRecord*>& tasks);

std::string_view action_name(control::DeploymentActionKind kind);
/// [{"actions": [{"action", "app"}]}]
nlohmann::json steps_view(const std::vector<std::vector<control::DeploymentAction>>& steps);
nlohmann::json deployment_view(const World& world, const control::Deployment& deployment);
/// What readiness checks of the service's instances have found.
nlohmann::json readiness_view(const World& world, const std::string& service);

/// The group with everything in it that the caller may see, as text.
struct GroupEmbed {
  std::optional<TimePoint> at;  ///< the apps as they were defined then
  bool apps = true;
  bool groups = true;
  Embed app{.counts = false, .deployments = false};
};
std::string group_text(const World& world, const std::string& id, const GroupEmbed& embed);
/// When something in it was defined, the newest first; of the apps and groups that are there.
std::vector<TimePoint> group_versions(const World& world, const std::string& id);

}  // namespace drover::api::marathon_v2
