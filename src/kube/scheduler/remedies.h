#pragma once

// What would let a job start that waits: what is told was tried, on all that waits. Belongs to Scheduler; of
// its last round.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "kube/scheduler/scheduler.h"

namespace drover::kube::scheduler {

class Scheduler::Rehearsal {
 public:
  /// One for all that is told at a time: it tries only so much. `scheduler` outlives it.
  explicit Rehearsal(Scheduler& scheduler);

  /// Those of a job that waits for room, behind those that are there.
  void add_remedies(const placement::Job& job, placement::Reasons& reasons);

 private:
  using Decisions = std::vector<placement::Decision>;

  bool may_look(std::size_t times);
  std::vector<std::string> find(const placement::Job& job);
  void give_up_wishes(const placement::Job& job, std::vector<std::string>& found);
  void ask_for_less(const placement::Job& job, std::vector<std::string>& found);
  std::optional<placement::Gang> gang_without(const placement::Job& job,
                                              const std::function<void(PodTemplate&)>& give_up,
                                              const std::string& topology_key);
  std::string topology_of(const placement::Job& job) const;
  std::optional<Decisions> start_of(const placement::Job& job, const placement::Gang& instead);

  Scheduler& scheduler_;
  std::string first_;  ///< job of those that wait for room
  std::size_t plans_left_;
  std::size_t looks_left_;  ///< at nodes
};

}  // namespace drover::kube::scheduler
