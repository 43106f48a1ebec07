#include "engine/dry_run.h"

#include <utility>

namespace drover::engine {

DryRun::DryRun(Decisions& daemon) : daemon_(daemon), draft_(daemon.state()) {
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

Status DryRun::set_rules(const Caller& caller, std::vector<placement::Queue> queues,
                         std::vector<placement::Quota> quotas) {
  return daemon_.set_rules(caller, std::move(queues), std::move(quotas));
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

}  // namespace drover::engine
