#pragma once

// The handlers of the Marathon API, by what they are about.

#include "api/http.h"
#include "api/router.h"

namespace drover::api::marathon_v2 {

using Answer = Result<Response>;
using AnswerLater = asio::awaitable<Result<Response>>;

// apps.cc
Answer list_apps(const Services& services, const Request& request);
Answer get_app(const Services& services, const Request& request);
Answer list_versions(const Services& services, const Request& request);
Answer get_version(const Services& services, const Request& request);

// app_changes.cc
AnswerLater create_app(const Services& services, const Request& request);
AnswerLater put_apps(const Services& services, const Request& request);
AnswerLater patch_apps(const Services& services, const Request& request);
AnswerLater put_app(const Services& services, const Request& request);
AnswerLater patch_app(const Services& services, const Request& request);
Answer delete_app(const Services& services, const Request& request);
Answer restart_app(const Services& services, const Request& request);

// tasks.cc
Answer list_app_tasks(const Services& services, const Request& request);
Answer kill_app_tasks(const Services& services, const Request& request);
Answer kill_app_task(const Services& services, const Request& request);
Answer list_tasks(const Services& services, const Request& request);
Answer kill_tasks(const Services& services, const Request& request);

// deployments.cc
Answer list_deployments(const Services& services, const Request& request);
Answer cancel_deployment(const Services& services, const Request& request);
Answer list_queue(const Services& services, const Request& request);
Answer reset_delay(const Services& services, const Request& request);

// groups.cc
Answer get_root_group(const Services& services, const Request& request);
Answer get_group(const Services& services, const Request& request);
Answer list_group_apps(const Services& services, const Request& request);
Answer list_group_versions(const Services& services, const Request& request);
Answer get_group_version(const Services& services, const Request& request);

// group_changes.cc
AnswerLater create_group(const Services& services, const Request& request);
AnswerLater put_group(const Services& services, const Request& request);
Answer delete_group(const Services& services, const Request& request);

// about.cc
Answer get_front(const Services& services, const Request& request);
Answer ping(const Services& services, const Request& request);
Answer get_info(const Services& services, const Request& request);
Answer get_leader(const Services& services, const Request& request);
Answer abdicate(const Services& services, const Request& request);
Answer list_plugins(const Services& services, const Request& request);
Answer get_metrics(const Services& services, const Request& request);
Answer get_logging(const Services& services, const Request& request);

// events.cc
Answer follow_events(const Services& services, const Request& request);

}  // namespace drover::api::marathon_v2
