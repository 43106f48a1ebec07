#pragma once

// The handlers of the Marathon API, by what they are about.

#include "api/beside.h"
#include "api/http.h"
#include "api/marathon/world.h"
#include "api/router.h"

namespace drover::api::marathon_v2 {

using Answer = Result<Response>;
using AnswerLater = asio::awaitable<Result<Response>>;
using AnswerBeside = Result<Write>;

/// Writes an answer from a world on another thread.
using WriteWorld = Answer (*)(const Services& services, const Request& request, const World& world);
/// How it is written from the world as it is now.
Write beside_of(const Services& services, const Request& request, Scope scope, WriteWorld write);

// apps.cc
AnswerBeside list_apps(const Services& services, const Request& request);
AnswerBeside get_app(const Services& services, const Request& request);
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
AnswerBeside list_app_tasks(const Services& services, const Request& request);
Answer kill_app_tasks(const Services& services, const Request& request);
Answer kill_app_task(const Services& services, const Request& request);
AnswerBeside list_tasks(const Services& services, const Request& request);
Answer kill_tasks(const Services& services, const Request& request);

// deployments.cc
AnswerBeside list_deployments(const Services& services, const Request& request);
Answer cancel_deployment(const Services& services, const Request& request);
AnswerBeside list_queue(const Services& services, const Request& request);
Answer reset_delay(const Services& services, const Request& request);

// groups.cc
AnswerBeside get_group(const Services& services, const Request& request);
AnswerBeside list_group_apps(const Services& services, const Request& request);
AnswerBeside list_group_versions(const Services& services, const Request& request);
AnswerBeside get_group_version(const Services& services, const Request& request);

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
AnswerBeside get_metrics(const Services& services, const Request& request);
Answer get_logging(const Services& services, const Request& request);

// events.cc
Answer follow_events(const Services& services, const Request& request);

}  // namespace drover::api::marathon_v2
