#pragma once

// What Marathon's clients see of apps, instances, deployments and groups, as JSON. Pure.

#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <string_view>

#include "api/marathon/world.h"

namespace drover::api::marathon_v2 {

/// What is shown with an app besides its definition.
struct Embed {
  bool counts = true;
  bool deployments = true;
  bool tasks = false;
  bool last_failure = false;
  bool readiness = false;
  bool task_stats = false;

  /// "apps.tasks", "app.counts", "group.apps.tasks" …: by what follows the last of the prefixes.
  static Embed of(const std::vector<std::string>& names, std::string_view prefix);
  static Embed all();
};

/// The app as text, composed of its definition and of what is embedded.
std::string app_text(const World& world, const control::ServiceRecord& record, const Embed& embed);

nlohmann::json task_view(const World& world, const control::TaskRecord& task);
/// Of the service's instances.
nlohmann::json task_views(const World& world, const std::string& service);

std::string_view action_name(control::DeploymentActionKind kind);
/// [{"actions": [{"action", "app"}]}]
nlohmann::json steps_view(const std::vector<std::vector<control::DeploymentAction>>& steps);
nlohmann::json deployment_view(const World& world, const control::Deployment& deployment);
/// What readiness checks of the service's instances have found.
nlohmann::json readiness_view(const World& world, const std::string& service);

/// The group with everything in it that the caller may see, as text.
struct GroupEmbed {
  bool apps = true;
  bool groups = true;
  Embed app{.counts = false, .deployments = false};
};
std::string group_text(const World& world, const std::string& id, const GroupEmbed& embed);
/// When something in it was defined last.
TimePoint group_version(const World& world, const std::string& id);

}  // namespace drover::api::marathon_v2
