#pragma once

// What would become of changes, without making them: an Api whose transactions are decided on a copy of the
// daemon's state, one after the other. Nothing of it is written, told or carried out, and it ends with the
// object. Everything else is asked of the daemon itself. On the control strand.

#include "engine/api.h"

namespace drover::engine {

class DryRun final : public Api {
 public:
  /// `daemon` outlives it.
  explicit DryRun(Api& daemon);

  void transact(std::function<void()> run, std::function<void(Status)> done) override;
  void rehearse(control::State& draft, const std::function<void()>& run) override;
  Result<control::TaskRecord> submit(const Caller& caller, const workload::TaskRequest& request) override;
  Result<std::vector<control::TaskRecord>> submit_gang(const Caller& caller,
                                                       const workload::GangRequest& request) override;
  Result<std::vector<control::TaskRecord>> submit_array(const Caller& caller,
                                                        const workload::ArrayRequest& request) override;
  Result<control::Made> change(const control::Event& event) override;
  const control::State& state() const override;
  void inspect_images(const Caller& caller, const std::vector<std::string>& images,
                      std::function<void()> done) override;
  TimePoint now() const override { return daemon_.now(); }
  TimePoint steady() const override { return daemon_.steady(); }
  NodeView node() const override { return daemon_.node(); }
  gpu::Inventory inventory() const override { return daemon_.inventory(); }

  // Nothing that is asked for in a dry run comes to these.
  Result<PlanView> plan(const Caller& caller, workload::GangRequest request) const override;
  void stop(const Caller& caller, const std::string& id, bool force,
            std::function<void(Result<control::TaskRecord>)> done) override;
  Status remove(const Caller& caller, const std::string& id) override;
  Result<control::TaskRecord> task(const Caller& caller, const std::string& id) const override;
  TaskList tasks(const Caller& caller) const override;
  Later<Result<ExplanationView>> explain(const Caller& caller, const std::string& id) const override;
  Result<std::string> sandbox(const Caller& caller, const std::string& id) const override;
  std::string sandbox_of(const std::string& id) const override;
  Later<std::vector<QueueView>> queues(const Caller& caller) const override;
  std::vector<QuotaView> quotas(const Caller& caller) const override;
  Status set_queue(const Caller& caller, placement::Queue queue) override;
  Status remove_queue(const Caller& caller, const std::string& path) override;
  Status set_quota(const Caller& caller, placement::Quota quota) override;
  Status remove_quota(const Caller& caller, const placement::Subject& subject) override;
  void cdi(std::function<void(Result<std::string>)> done) override;
  void image_variants(const Caller& caller, const std::string& image, const std::string& profile,
                      std::function<void(Result<VariantsView>)> done) override;
  Later<std::vector<Holder>> holders(const Caller& caller) const override;
  void events(const Caller& caller, const EventQuery& query, EventOrder order, EventPageTaker done) override;
  std::shared_ptr<void> subscribe(std::function<void()> listener) override;
  void happened(control::Event event) override;
  std::shared_ptr<void> watch(std::function<void(const control::Notice&)> listener) override;

 private:
  Api& daemon_;
  control::State draft_;
  bool deciding_ = false;
};

}  // namespace drover::engine
