#pragma once

// The handlers of Chronos' API (wire: its REST resources). Who asks sees and changes what he owns, root
// everything; what belongs to others is not found.

#include <string>
#include <utility>

#include "api/beside.h"
#include "api/http.h"
#include "api/router.h"

namespace drover::api::chronos {

using AnswerLater = asio::awaitable<Result<Response>>;
using AnswerBeside = Result<Write>;

// jobs.cc
AnswerBeside list_jobs(const Services& services, const Request& request);
AnswerBeside summarise_jobs(const Services& services, const Request& request);
AnswerBeside search_jobs(const Services& services, const Request& request);
Result<Response> get_job(const Services& services, const Request& request);

// changes.cc
AnswerLater define_scheduled(const Services& services, const Request& request);
AnswerLater define_dependent(const Services& services, const Request& request);
Result<Response> run_job(const Services& services, const Request& request);
Result<Response> remove_job(const Services& services, const Request& request);
Result<Response> mark_job(const Services& services, const Request& request);
Result<Response> kill_job(const Services& services, const Request& request);
Result<Response> add_progress(const Services& services, const Request& request);

// statistics.cc
Result<Response> get_job_statistics(const Services& services, const Request& request);
AnswerBeside get_statistics(const Services& services, const Request& request);
AnswerBeside get_graph_dot(const Services& services, const Request& request);
AnswerBeside get_graph_csv(const Services& services, const Request& request);
Result<Response> get_leader(const Services& services, const Request& request);

/// Whether the schedule is the caller's to see and to change.
bool may_use(const Request& request, const control::ScheduleRecord& record);
/// The schedule that the route names.
Result<const control::ScheduleRecord*> find_job(const Services& services, const Request& request);
/// Calls visit(record) for every schedule of the caller, by name.
template <typename Visit>
void each_job(const control::State& state, const Request& request, Visit visit) {
  for (const auto& [name, record] : state.schedules)
    if (may_use(request, record)) visit(record);
}
/// How an answer is written by write(state, request) on another thread.
template <typename WriteState>
Write beside_of(const Services& services, const Request& request, WriteState write) {
  return [state = services.decisions->snapshot(), request, write = std::move(write)]() -> Result<Response> {
    return write(*state, request);
  };
}

Response json_text(std::string text);
Response plain_text(std::string text);
Response no_content();

/// {"status": "Bad Request", "message": "…"}: 400 for what Chronos throws IllegalArgumentException, unknown
/// jobs too; 500 for a dependent job without parents.
Response error_of(const Error& error);

}  // namespace drover::api::chronos
