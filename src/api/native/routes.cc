#include "api/native/routes.h"

#include <array>

#include "api/native/handlers.h"

namespace drover::api {
namespace {

constexpr bool kOpen = true;

constexpr std::array kRoutes = {
    Route{"GET", "/health", at_once<get_health>, kOpen},
    Route{"GET", "/v1/version", at_once<get_version>},
    Route{"GET", "/v1/nodes", at_once<list_nodes>},
    Route{"GET", "/v1/gpus", list_gpus},
    Route{"GET", "/v1/topology", at_once<get_topology>},
    Route{"GET", "/v1/cdi", get_cdi},
    Route{"GET", "/v1/backup", get_backup},
    Route{.method = "GET", .path = "/v1/metrics", .handler = get_metrics, .for_metrics = true},
    Route{"GET", "/v1/events", get_events},
    Route{"GET", "/v1/report", get_report},
    Route{"GET", "/v1/queues", beside<list_queues>},
    Route{"PUT", "/v1/queues", set_queues},
    Route{"PUT", "/v1/queues/{queue...}", set_queue},
    Route{"PATCH", "/v1/queues/{queue...}", set_queue},
    Route{"DELETE", "/v1/queues/{queue...}", remove_queue},
    Route{"GET", "/v1/quotas", at_once<list_quotas>},
    Route{"PUT", "/v1/quotas", set_quotas},
    Route{"PUT", "/v1/quotas/{subject...}", set_quota},
    Route{"PATCH", "/v1/quotas/{subject...}", set_quota},
    Route{"DELETE", "/v1/quotas/{subject...}", remove_quota},
    Route{"PUT", "/v1/cordons/{gpu}", set_cordon},
    Route{"DELETE", "/v1/cordons/{gpu}", remove_cordon},
    Route{"GET", "/v1/images", list_images},
    Route{"POST", "/v1/images/pull", pull_image},
    Route{"POST", "/v1/images/load", load_image},
    Route{"POST", "/v1/images/prune", prune_images},
    Route{"GET", "/v1/images/{name...}", inspect_image},
    Route{"DELETE", "/v1/images/{name...}", remove_image},
    Route{"GET", "/v1/images/{name...}/variants", list_image_variants},
    Route{"POST", "/v1/plan", plan_task},
    Route{"POST", "/v1/dry-run", dry_run},
    Route{"GET", "/v1/export", beside<export_definitions>},
    Route{"GET", "/v1/schemas/{name}", at_once<get_schema>, kOpen},
    Route{"GET", "/v1/tasks", beside<list_tasks>},
    Route{"POST", "/v1/tasks", submit_task},
    Route{"GET", "/v1/tasks/{id}", at_once<get_task>},
    Route{"PATCH", "/v1/tasks/{id}", change_task},
    Route{"DELETE", "/v1/tasks/{id}", remove_task},
    Route{"POST", "/v1/tasks/{id}/stop", stop_task},
    Route{"POST", "/v1/tasks/{id}/exec", exec_in_task},
    Route{"POST", "/v1/tasks/{id}/input", write_to_task},
    Route{"POST", "/v1/tasks/{id}/forward", forward_to_task},
    Route{"GET", "/v1/tasks/{id}/explain", beside<explain_task>},
    Route{"GET", "/v1/tasks/{id}/logs", get_logs},
    Route{"GET", "/v1/tasks/{id}/stats", get_stats},
    Route{"GET", "/v1/tasks/{id}/files/browse", browse_files},
    Route{"GET", "/v1/tasks/{id}/files/read", read_sandbox_file},
    Route{"GET", "/v1/tasks/{id}/files/download", download_file},
    Route{"GET", "/ui", at_once<get_ui>, kOpen},
    Route{"GET", "/ui/{file...}", at_once<get_ui>, kOpen},
    Route{"GET", "/v1/whoami", at_once<who_am_i>},
    Route{"POST", "/v1/login", at_once<log_in>},
    Route{"POST", "/v1/logout", at_once<log_out>},
    Route{"POST", "/v1/tickets", at_once<make_ticket>},
    Route{"POST", "/v1/page", at_once<open_page>},
    Route{"GET", "/v1/socket", at_once<open_socket>, kOpen},
};

}  // namespace

std::span<const Route> native_routes() {
  return kRoutes;
}

}  // namespace drover::api
