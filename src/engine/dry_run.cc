#include "engine/dry_run.h"

#include <utility>

namespace drover::engine {
namespace {

Failure no_dry_run() {
  return fail(ErrorKind::kUnsupported, "This cannot be tried without being done");
}

}  // namespace

DryRun::DryRun(Api& daemon) : daemon_(daemon), draft_(daemon.state()) {
  draft_.cluster.detach();
}

void DryRun::transact(std::function<void()> run, std::function<void(Status)> done) {
  draft_.images = daemon_.state().images;  // what was found out about them meanwhile
  deciding_ = true;
  daemon_.rehearse(draft_, run);
  deciding_ = false;
  done({});
}

void DryRun::rehearse(control::State& draft, const std::function<void()>& run) {
  daemon_.rehearse(draft, run);
}

Result<control::TaskRecord> DryRun::submit(const Caller& caller, const workload::TaskRequest& request) {
  return daemon_.submit(caller, request);
}

Result<std::vector<control::TaskRecord>> DryRun::submit_gang(const Caller& caller,
                                                             const workload::GangRequest& request) {
  return daemon_.submit_gang(caller, request);
}

Result<std::vector<control::TaskRecord>> DryRun::submit_array(const Caller& caller,
                                                              const workload::ArrayRequest& request) {
  return daemon_.submit_array(caller, request);
}

Result<control::Made> DryRun::change(const control::Event& event) {
  return daemon_.change(event);
}

const control::State& DryRun::state() const {
  return deciding_ ? daemon_.state() : draft_;
}

void DryRun::inspect_images(const Caller& caller, const std::vector<std::string>& images,
                            std::function<void()> done) {
  daemon_.inspect_images(caller, images, std::move(done));
}

Result<PlanView> DryRun::plan(const Caller&, workload::GangRequest) const {
  return no_dry_run();
}

void DryRun::stop(const Caller&, const std::string&, bool,
                  std::function<void(Result<control::TaskRecord>)> done) {
  done(no_dry_run());
}

Status DryRun::remove(const Caller&, const std::string&) {
  return no_dry_run();
}

Result<control::TaskRecord> DryRun::task(const Caller&, const std::string&) const {
  return no_dry_run();
}

TaskList DryRun::tasks(const Caller& caller) const {
  return daemon_.tasks(caller);
}

Later<Result<ExplanationView>> DryRun::explain(const Caller&, const std::string&) const {
  return []() -> Result<ExplanationView> { return no_dry_run(); };
}

Result<std::string> DryRun::sandbox(const Caller&, const std::string&) const {
  return no_dry_run();
}

std::string DryRun::sandbox_of(const std::string& id) const {
  return daemon_.sandbox_of(id);
}

Later<std::vector<QueueView>> DryRun::queues(const Caller& caller) const {
  return daemon_.queues(caller);
}

std::vector<QuotaView> DryRun::quotas(const Caller& caller) const {
  return daemon_.quotas(caller);
}

Status DryRun::set_queue(const Caller&, placement::Queue) {
  return no_dry_run();
}

Status DryRun::remove_queue(const Caller&, const std::string&) {
  return no_dry_run();
}

Status DryRun::set_quota(const Caller&, placement::Quota) {
  return no_dry_run();
}

Status DryRun::remove_quota(const Caller&, const placement::Subject&) {
  return no_dry_run();
}

void DryRun::cdi(std::function<void(Result<std::string>)> done) {
  done(no_dry_run());
}

void DryRun::image_variants(const Caller&, const std::string&, const std::string&,
                            std::function<void(Result<VariantsView>)> done) {
  done(no_dry_run());
}

Later<std::vector<Api::Holder>> DryRun::holders(const Caller& caller) const {
  return daemon_.holders(caller);
}

void DryRun::events(const Caller&, const EventQuery&, EventOrder, EventPageTaker done) {
  done(no_dry_run());
}

std::shared_ptr<void> DryRun::subscribe(std::function<void()>) {
  return nullptr;
}

/// Nothing happens in a dry run.
void DryRun::happened(control::Event) {}

std::shared_ptr<void> DryRun::watch(std::function<void(const control::Notice&)>) {
  return nullptr;
}

}  // namespace drover::engine
