#pragma once

// What operators and their tools read of a Mesos master and agent. One process is both here.

#include <string>

#include "api/mesos/snapshot.h"
#include "api/router.h"

namespace drover::api::mesos {

Result<Response> get_version(const Services& services, const Request& request);
// What may be long, from a snapshot (from_snapshot())
Result<Response> write_state(const Snapshot& snapshot, const Request& request);
Result<Response> write_slaves(const Snapshot& snapshot, const Request& request);
Result<Response> write_frameworks(const Snapshot& snapshot, const Request& request);
Result<Response> write_tasks(const Snapshot& snapshot, const Request& request);
Result<Response> write_metrics(const Snapshot& snapshot, const Request& request);
Result<Response> write_roles(const Snapshot& snapshot, const Request& request);
Result<Response> write_state_summary(const Snapshot& snapshot, const Request& request);

Result<Response> get_redirect(const Services& services, const Request& request);
Result<Response> get_flags(const Services& services, const Request& request);
Result<Response> get_system_stats(const Services& services, const Request& request);
Result<Response> get_health(const Services& services, const Request& request);

/// Ends a framework with its tasks: its owner may, and root.
asio::awaitable<Result<Response>> tear_down(const Services& services, const engine::Caller& caller,
                                            const std::string& framework);
/// POST with `frameworkId=ID` as a form.
asio::awaitable<Result<Response>> post_teardown(const Services& services, const Request& request);

/// What is not kept here has its empty form: quotas, weights, times of maintenance.
Result<Response> get_quota(const Services& services, const Request& request);
Result<Response> get_weights(const Services& services, const Request& request);
Result<Response> get_maintenance(const Services& services, const Request& request);

/// Below /slave(1).
Result<Response> write_agent_state(const Snapshot& snapshot, const Request& request);
Result<Response> write_containers(const Snapshot& snapshot, const Request& request);

/// {"path as /files takes it": "folder on the machine"} of every sandbox that the caller may read.
Result<Write> list_sandboxes(const Services& services, const Request& request);
asio::awaitable<Result<Response>> browse(const Services& services, const Request& request);
asio::awaitable<Result<Response>> read(const Services& services, const Request& request);
asio::awaitable<Result<Response>> download(const Services& services, const Request& request);

}  // namespace drover::api::mesos
