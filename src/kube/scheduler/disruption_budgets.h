#pragma once

// PodDisruptionBudgets: how many of the pods that each selects may be ended for others. The API server says
// so of each; what was chosen to end since counts too. One thread at a time.

#include <cstddef>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "kube/scheduler/labels.h"
#include "kube/scheduler/pod.h"
#include "placement/schedule.h"

namespace drover::kube::scheduler {

struct PodBudget {
  std::string name_space = {};
  std::string name = {};
  Selector selector = {};  ///< an empty one selects nothing
  int allowed = 0;
  std::set<std::string, std::less<>> disrupted =
      {};  ///< names of pods that are being evicted: they are in it
};
/// kInvalid for what no API server gives out.
Result<PodBudget> read_pod_budget(const nlohmann::json& budget);

class BudgetBook {
 public:
  /// A pod that runs, as a part of `job`.
  void put_pod(const std::string& job, const Pod& pod);
  void remove_pod(const std::string& uid);
  void put_budget(PodBudget budget);
  void remove_budget(std::string_view name_space, std::string_view name);
  /// Whether it was chosen to end: that takes of its budgets, until they are told anew after its end has
  /// begun.
  void set_ending(const std::string& uid, bool ending);

  using Budgets = std::vector<placement::DisruptionBudget>;
  /// In any order, as they are now: what changes later is not in it.
  std::shared_ptr<const Budgets> budgets() const { return budgets_; }

 private:
  struct Entry {
    PodBudget budget;
    std::set<std::string> ending;  ///< uids
    std::size_t place = 0;         ///< among budgets()
  };
  struct Member {
    std::string job;
    Pod pod;
  };
  struct Space {
    std::map<std::string, Entry, std::less<>> entries;
    std::map<std::string, Member> pods;  ///< by uid
  };

  static bool covers(const Entry& entry, const Pod& pod);
  void count(const Entry& entry, const Member& member, int sign);
  void show_allowed(const Entry& entry);
  /// To be changed: a copy, when somebody looks at them.
  Budgets& own();

  std::map<std::string, Space, std::less<>> spaces_;
  std::map<std::string, std::string> space_of_;  ///< by uid
  std::shared_ptr<Budgets> budgets_ = std::make_shared<Budgets>();
};

}  // namespace drover::kube::scheduler
