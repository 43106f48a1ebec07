// Gangs, plans and the rules of sharing: not carried out yet.

#include "engine/local.h"

namespace drover::engine {
namespace {

Failure not_yet() {
  return fail(ErrorKind::kUnsupported, "This daemon does not know gangs, plans, queues and quotas yet");
}

}  // namespace

void LocalEngine::submit_gang(const Caller&, workload::GangRequest,
                              std::function<void(Result<std::vector<control::TaskRecord>>)> done) {
  done(not_yet());
}

Result<PlanView> LocalEngine::plan(const Caller&, workload::GangRequest) const {
  return not_yet();
}

std::vector<QueueView> LocalEngine::queues(const Caller&) const {
  return {};
}

std::vector<QuotaView> LocalEngine::quotas(const Caller&) const {
  return {};
}

void LocalEngine::set_queue(const Caller&, placement::Queue, std::function<void(Status)> done) {
  done(not_yet());
}

void LocalEngine::remove_queue(const Caller&, const std::string&, std::function<void(Status)> done) {
  done(not_yet());
}

void LocalEngine::set_quota(const Caller&, placement::Quota, std::function<void(Status)> done) {
  done(not_yet());
}

void LocalEngine::remove_quota(const Caller&, const placement::Subject&, std::function<void(Status)> done) {
  done(not_yet());
}

}  // namespace drover::engine
