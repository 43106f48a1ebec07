#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "api/async.h"
#include "api/chronos/handlers.h"
#include "api/known_images.h"
#include "api/transaction.h"
#include "api/workers.h"
#include "base/decode.h"
#include "chronos/job.h"

namespace drover::api::chronos {
namespace {

namespace wire = drover::chronos;

/// Whom it runs as and whom it belongs to. What root changes of somebody else's stays that one's.
/// `user`: whom the job names, when it names somebody.
Status complete(const Services& services, const Request& request, wire::JobRequest& job,
                const Result<User>& user) {
  const auto& caller = *request.caller;
  auto& task = job.schedule.task;
  task.owner = caller.user.uid;
  task.owner_name = caller.user.name;
  task.user = caller.user;
  const auto& schedules = services.decisions->state().schedules;
  if (const auto existing = schedules.find(job.schedule.name); existing != schedules.end()) {
    const auto& before = existing->second.schedule.task;
    if (!may_use(request, existing->second))
      return fail(ErrorKind::kPermissionDenied,
                  fmt::format("Job '{}' belongs to somebody else", job.schedule.name), "choose another name",
                  "/name");
    if (before.owner != caller.user.uid) {
      task.owner = before.owner;
      task.owner_name = before.owner_name;
      task.user = before.user;
    }
  }
  for (const auto& parent : job.schedule.parents) {
    const auto found = schedules.find(parent);
    if (found != schedules.end() && !may_use(request, found->second))
      return fail(ErrorKind::kNotFound, fmt::format("Job '{}' not found", parent), "", "/parents");
  }
  if (job.run_as_user.empty()) return {};
  if (!user) {
    auto error = user.error();
    error.path = "/runAsUser";
    return Failure(std::move(error));
  }
  if (!caller.is_root() && user->uid != caller.user.uid)
    return fail(ErrorKind::kPermissionDenied,
                fmt::format("'{}' may not run jobs as '{}'", caller.user.name, user->name),
                "only root may name another user", "/runAsUser");
  task.user = *user;
  return {};
}

Result<Response> change(const Services& services, const control::Event& event) {
  DROVER_CHECK_OK(services.decisions->change(event));
  return no_content();
}

AnswerLater define(const Services& services, const Request& request, wire::JobKind kind) {
  const auto& machine = services.decisions->state().machine();
  wire::Attributes attributes(machine.attributes.begin(), machine.attributes.end());
  attributes.emplace("hostname", std::vector{machine.name});
  DROVER_CO_TRY(auto job, wire::decode_job(request.body, kind, &attributes, services.decisions->now()));
  Result<User> user;
  if (!job.run_as_user.empty())
    user = co_await services.workers->users.named(job.run_as_user, request.caller->user.uid);
  if (const auto& image = job.schedule.task.image) {
    auto tried = job;  // nobody's registry is asked for what is refused
    DROVER_CO_CHECK_OK(complete(services, request, tried, user));
    co_await inspect_images(*services.decisions, *request.caller, {*image});
  }
  co_return co_await in_transaction(*services.decisions, [&]() -> Result<Response> {
    auto wanted = job;
    DROVER_CHECK_OK(complete(services, request, wanted, user));
    return change(services, control::event::ScheduleDefined{std::move(wanted.schedule)});
  });
}

}  // namespace

AnswerLater define_scheduled(const Services& services, const Request& request) {
  return define(services, request, wire::JobKind::kScheduled);
}

AnswerLater define_dependent(const Services& services, const Request& request) {
  return define(services, request, wire::JobKind::kDependent);
}

Result<Response> run_job(const Services& services, const Request& request) {
  DROVER_TRY(const auto* record, find_job(services, request));
  const auto arguments = request.query.find("arguments");
  constexpr std::size_t kLongest = 4096;
  std::string words = arguments == request.query.end() ? "" : arguments->second;
  if (words.size() > kLongest || words.find('\0') != words.npos)
    return fail(ErrorKind::kInvalid, fmt::format("The arguments are longer than {} bytes", kLongest));
  const auto& runs_as = record->schedule.task.user;
  if (!words.empty() && !request.caller->is_root() && runs_as.uid != request.caller->user.uid)
    return fail(ErrorKind::kPermissionDenied,
                fmt::format("'{}' may not give arguments to what runs as '{}'", request.caller->user.name,
                            runs_as.name),
                "leave the arguments out", "/arguments");
  return change(services, control::event::ScheduleRunRequested{record->schedule.name, std::move(words)});
}

Result<Response> remove_job(const Services& services, const Request& request) {
  DROVER_TRY(const auto* record, find_job(services, request));
  return change(services, control::event::ScheduleRemoved{record->schedule.name});
}

Result<Response> mark_job(const Services& services, const Request& request) {
  DROVER_TRY(const auto* record, find_job(services, request));
  const auto name = record->schedule.name;
  DROVER_CHECK_OK(services.decisions->change(control::event::ScheduleMarked{name}));
  return plain_text(fmt::format("marked job {} as successful: true", name));
}

Result<Response> kill_job(const Services& services, const Request& request) {
  DROVER_TRY(const auto* record, find_job(services, request));
  return change(services, control::event::ScheduleKilled{record->schedule.name});
}

Result<Response> add_progress(const Services& services, const Request& request) {
  DROVER_TRY(const auto* record, find_job(services, request));
  DROVER_TRY(const auto body, parse_json(request.body, "The body"));
  std::vector<Error> mistakes;
  Decoder decoder(body, mistakes);
  const auto count = decoder.integer("numAdditionalElementsProcessed", 0, 1LL << 53);
  if (mistakes.empty() && !count) decoder.mistake("numAdditionalElementsProcessed", "missing");
  if (!mistakes.empty()) return Failure(join_mistakes(mistakes, "The request"));
  return change(services, control::event::ScheduleProgressed{record->schedule.name,
                                                             request.parameters.at("task"), *count});
}

}  // namespace drover::api::chronos
