#pragma once

// The handlers of the native API, by what they are about. Each is described in docs/openapi.yaml.

#include "api/beside.h"
#include "api/http.h"
#include "api/router.h"

namespace drover::api {

// machine.cc
Result<Response> get_version(const Services& services, const Request& request);
Result<Response> get_health(const Services& services, const Request& request);
Result<Response> list_nodes(const Services& services, const Request& request);
asio::awaitable<Result<Response>> list_gpus(const Services& services, const Request& request);
Result<Response> get_topology(const Services& services, const Request& request);
asio::awaitable<Result<Response>> get_metrics(const Services& services, const Request& request);
asio::awaitable<Result<Response>> get_backup(const Services& services, const Request& request);
asio::awaitable<Result<Response>> get_cdi(const Services& services, const Request& request);

// tasks.cc
Result<Write> list_tasks(const Services& services, const Request& request);
Result<Response> get_task(const Services& services, const Request& request);
Result<Write> explain_task(const Services& services, const Request& request);
asio::awaitable<Result<Response>> plan_task(const Services& services, const Request& request);
asio::awaitable<Result<Response>> submit_task(const Services& services, const Request& request);
asio::awaitable<Result<Response>> stop_task(const Services& services, const Request& request);
asio::awaitable<Result<Response>> change_task(const Services& services, const Request& request);
asio::awaitable<Result<Response>> remove_task(const Services& services, const Request& request);

// dry_run.cc
asio::awaitable<Result<Response>> dry_run(const Services& services, const Request& request);
// export.cc
Result<Write> export_definitions(const Services& services, const Request& request);
// schemas.cc
Result<Response> get_schema(const Services& services, const Request& request);

// sharing.cc
Result<Write> list_queues(const Services& services, const Request& request);
asio::awaitable<Result<Response>> set_queues(const Services& services, const Request& request);
asio::awaitable<Result<Response>> set_queue(const Services& services, const Request& request);
asio::awaitable<Result<Response>> remove_queue(const Services& services, const Request& request);
Result<Response> list_quotas(const Services& services, const Request& request);
asio::awaitable<Result<Response>> set_quotas(const Services& services, const Request& request);
asio::awaitable<Result<Response>> set_quota(const Services& services, const Request& request);
asio::awaitable<Result<Response>> remove_quota(const Services& services, const Request& request);
asio::awaitable<Result<Response>> set_cordon(const Services& services, const Request& request);
asio::awaitable<Result<Response>> remove_cordon(const Services& services, const Request& request);

// files.cc
asio::awaitable<Result<Response>> browse_files(const Services& services, const Request& request);
asio::awaitable<Result<Response>> read_sandbox_file(const Services& services, const Request& request);
asio::awaitable<Result<Response>> download_file(const Services& services, const Request& request);

// logs.cc
asio::awaitable<Result<Response>> get_logs(const Services& services, const Request& request);
// stats.cc
asio::awaitable<Result<Response>> get_stats(const Services& services, const Request& request);
// exec.cc
asio::awaitable<Result<Response>> exec_in_task(const Services& services, const Request& request);
// input.cc
asio::awaitable<Result<Response>> write_to_task(const Services& services, const Request& request);
asio::awaitable<Result<Response>> forward_to_task(const Services& services, const Request& request);

// images.cc
asio::awaitable<Result<Response>> list_images(const Services& services, const Request& request);
asio::awaitable<Result<Response>> inspect_image(const Services& services, const Request& request);
asio::awaitable<Result<Response>> remove_image(const Services& services, const Request& request);
asio::awaitable<Result<Response>> pull_image(const Services& services, const Request& request);
asio::awaitable<Result<Response>> load_image(const Services& services, const Request& request);
asio::awaitable<Result<Response>> prune_images(const Services& services, const Request& request);

// ui.cc
Result<Response> get_ui(const Services& services, const Request& request);
Result<Response> log_in(const Services& services, const Request& request);
Result<Response> log_out(const Services& services, const Request& request);
Result<Response> make_ticket(const Services& services, const Request& request);
Result<Response> open_socket(const Services& services, const Request& request);
Result<Response> open_page(const Services& services, const Request& request);
Result<Response> who_am_i(const Services& services, const Request& request);

// image_variants.cc
asio::awaitable<Result<Response>> list_image_variants(const Services& services, const Request& request);

// events.cc
asio::awaitable<Result<Response>> get_events(const Services& services, const Request& request);

// report.cc
asio::awaitable<Result<Response>> get_report(const Services& services, const Request& request);

}  // namespace drover::api
