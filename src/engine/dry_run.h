#pragma once

// What would become of changes, without making them: transactions that are decided on a copy of the daemon's
// state, one after the other. Nothing of it is written, told or carried out, and it ends with the object. On
// the control strand.

#include "engine/api.h"

namespace drover::engine {

class DryRun final : public Decisions {
 public:
  /// `daemon` outlives it.
  explicit DryRun(Decisions& daemon);

  void transact(std::function<void()> run, std::function<void(Status)> done) override;
  void rehearse(control::State& draft, const std::function<void()>& run) override;
  Result<control::TaskRecord> submit(const Caller& caller, const workload::TaskRequest& request) override;
  Result<std::vector<control::TaskRecord>> submit_gang(const Caller& caller,
                                                       const workload::GangRequest& request) override;
  Result<std::vector<control::TaskRecord>> submit_array(const Caller& caller,
                                                        const workload::ArrayRequest& request) override;
  Status set_rules(const Caller& caller, std::vector<placement::Queue> queues,
                   std::vector<placement::Quota> quotas) override;
  Result<control::Made> change(const control::Event& event) override;
  const control::State& state() const override;
  void inspect_images(const Caller& caller, const std::vector<std::string>& images,
                      std::function<void()> done) override;
  TimePoint now() const override { return daemon_.now(); }
  TimePoint steady() const override { return daemon_.steady(); }

 private:
  Decisions& daemon_;
  control::State draft_;
  bool deciding_ = false;
};

}  // namespace drover::engine
