#include "api/marathon/routes.h"

#include <array>

#include "api/marathon/changes.h"
#include "api/marathon/handlers.h"

namespace drover::api {
namespace {

using namespace marathon_v2;

constexpr bool kOpen = true;

constexpr std::array kRoutes = {
    Route{"GET", "/", at_once<get_front>, kOpen},
    Route{"GET", "/help", at_once<get_front>, kOpen},
    Route{"GET", "/ping", at_once<ping>, kOpen},
    Route{"GET", "/metrics", beside<get_metrics>},
    Route{"GET", "/logging", at_once<get_logging>},
    Route{"GET", "/v2/info", at_once<get_info>},
    Route{"GET", "/v2/leader", at_once<get_leader>},
    Route{"DELETE", "/v2/leader", at_once<abdicate>},
    Route{"GET", "/v2/plugins", at_once<list_plugins>},
    Route{"GET", "/v2/events", at_once<follow_events>},
    Route{"GET", "/v2/apps", beside<list_apps>},
    Route{"POST", "/v2/apps", create_app},
    Route{"PUT", "/v2/apps", put_apps},
    Route{"PATCH", "/v2/apps", patch_apps},
    Route{"GET", "/v2/apps/{id...}", beside<get_app>},
    Route{"PUT", "/v2/apps/{id...}", put_app},
    Route{"PATCH", "/v2/apps/{id...}", patch_app},
    Route{"DELETE", "/v2/apps/{id...}", transacted<delete_app>},
    Route{"POST", "/v2/apps/{id...}/restart", transacted<restart_app>},
    Route{"GET", "/v2/apps/{id...}/tasks", beside<list_app_tasks>},
    Route{"DELETE", "/v2/apps/{id...}/tasks", transacted<kill_app_tasks>},
    Route{"DELETE", "/v2/apps/{id...}/tasks/{task}", transacted<kill_app_task>},
    Route{"GET", "/v2/apps/{id...}/versions", at_once<list_versions>},
    Route{"GET", "/v2/apps/{id...}/versions/{version}", at_once<get_version>},
    Route{"GET", "/v2/tasks", beside<list_tasks>},
    Route{"POST", "/v2/tasks/delete", transacted<kill_tasks>},
    Route{"GET", "/v2/deployments", beside<list_deployments>},
    Route{"DELETE", "/v2/deployments/{id}", transacted<cancel_deployment>},
    Route{"GET", "/v2/queue", beside<list_queue>},
    Route{"DELETE", "/v2/queue/{id...}/delay", transacted<reset_delay>},
    Route{"GET", "/v2/groups", beside<get_group>},
    Route{"POST", "/v2/groups", create_group},
    Route{"PUT", "/v2/groups", put_group},
    Route{"DELETE", "/v2/groups", transacted<delete_group>},
    Route{"GET", "/v2/groups/apps", beside<list_group_apps>},
    Route{"GET", "/v2/groups/versions", beside<list_group_versions>},
    Route{"GET", "/v2/groups/versions/{version}", beside<get_group_version>},
    Route{"GET", "/v2/groups/{id...}", beside<get_group>},
    Route{"POST", "/v2/groups/{id...}", create_group},
    Route{"PUT", "/v2/groups/{id...}", put_group},
    Route{"DELETE", "/v2/groups/{id...}", transacted<delete_group>},
    Route{"GET", "/v2/groups/{id...}/apps", beside<list_group_apps>},
    Route{"GET", "/v2/groups/{id...}/versions", beside<list_group_versions>},
    Route{"GET", "/v2/groups/{id...}/versions/{version}", beside<get_group_version>},
};

}  // namespace

std::span<const Route> marathon_routes() {
  return kRoutes;
}

}  // namespace drover::api
