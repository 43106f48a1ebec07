#pragma once

// What operators and their tools read of a Mesos master and agent. One process is both here.

#include "api/router.h"

namespace drover::api::mesos {

Result<Response> get_version(const Services& services, const Request& request);
Result<Response> get_state(const Services& services, const Request& request);
Result<Response> get_slaves(const Services& services, const Request& request);
Result<Response> get_frameworks(const Services& services, const Request& request);
Result<Response> get_tasks(const Services& services, const Request& request);
Result<Response> get_metrics(const Services& services, const Request& request);
Result<Response> get_redirect(const Services& services, const Request& request);
Result<Response> get_flags(const Services& services, const Request& request);
Result<Response> get_health(const Services& services, const Request& request);
Result<Response> get_roles(const Services& services, const Request& request);
Result<Response> get_state_summary(const Services& services, const Request& request);

/// Below /slave(1).
Result<Response> get_agent_state(const Services& services, const Request& request);
Result<Response> get_containers(const Services& services, const Request& request);

asio::awaitable<Result<Response>> browse(const Services& services, const Request& request);
asio::awaitable<Result<Response>> read(const Services& services, const Request& request);
asio::awaitable<Result<Response>> download(const Services& services, const Request& request);

}  // namespace drover::api::mesos
