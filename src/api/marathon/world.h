#pragma once

// The services, instances and deployments that one caller may see, in Marathon's terms: as they are, on the
// control strand and within one call; or as a Scene has them, on any thread.

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/router.h"
#include "control/state.h"

namespace drover::api::marathon_v2 {

/// How many instances are in which condition.
struct Counts {
  int staged = 0;
  int running = 0;
  int healthy = 0;
  int unhealthy = 0;
};

/// Of which apps the instances will be asked for.
enum class Scope {
  kSome,
  kAll,  ///< one pass over all tasks is then much quicker than to search for each
};

class ServicePorts;

/// What one caller's world is made of, at one moment.
struct Scene {
  std::shared_ptr<const control::State> state;
  engine::Caller caller;
  TimePoint now{};
  TimePoint steady{};
  std::string ip;
  ServicePorts* service_ports = nullptr;
};
/// As it is now. On the control strand.
Scene scene_of(const Services& services, const engine::Caller& caller);

class World {
 public:
  /// As it is, whatever becomes of it.
  World(const Services& services, const engine::Caller& caller);
  explicit World(Scene scene, Scope scope = Scope::kSome);

  const control::State& state() const { return *scene_.state; }
  const engine::Caller& caller() const { return scene_.caller; }
  const std::string& host() const { return state().node; }
  TimePoint now() const { return scene_.now; }
  TimePoint steady() const { return scene_.steady; }
  const std::string& ip() const { return scene_.ip; }

  bool may_see(const workload::Service& service) const {
    return caller().is_root() || service.task.owner == caller().user.uid;
  }
  /// Null when there is none that the caller may see.
  const control::ServiceRecord* service(const std::string& id) const;
  /// Of others, too: whether the id is taken.
  bool is_taken(const std::string& id) const;
  /// All that he may see, in a group or anywhere.
  std::vector<const control::ServiceRecord*> services(std::string_view group = "/") const;
  /// The root, every group with something in it, and those of his that were defined.
  bool has_group(const std::string& id) const;

  /// The instances that have been launched and not ended, by age.
  std::vector<const control::TaskRecord*> instances(const std::string& service) const;
  /// Those that wait for their resources, by age.
  std::vector<const control::TaskRecord*> waiting(const std::string& service) const;
  /// By the id that Marathon's clients know; null when there is none, or none that has not ended.
  const control::TaskRecord* instance(const std::string& task_id) const;

  Counts counts(const control::ServiceRecord& record) const;
  const control::TaskHealth* health(const control::TaskRecord& task) const;
  /// The service that the task is an instance of.
  const control::ServiceRecord& service_of(const control::TaskRecord& task) const;
  /// The definition that the instance was started by, or the latest.
  const workload::Service& definition_of(const control::TaskRecord& task,
                                         const control::ServiceRecord& record) const;
  /// Valid until the next call.
  const std::vector<int>& service_ports(const workload::Service& service) const;
  /// Deployments under way that touch the service.
  const std::vector<std::string>& deployments(const std::string& service) const;
  bool may_see(const control::Deployment& deployment) const;
  /// Takes it back, or gives it up: all that it touches is the caller's.
  bool may_change(const control::Deployment& deployment) const;

 private:
  using Tasks = std::vector<const control::TaskRecord*>;

  void collect_live();
  /// Those that have not ended, by age.
  Tasks tasks_of(const std::string& service) const;

  Scene scene_;
  std::map<std::string, std::vector<std::string>> deployments_;  ///< by service
  Scope scope_;
  struct Live {
    std::string_view service;
    const control::TaskRecord* task;
  };
  // With kAll; instances that have not ended.
  std::vector<Live> live_;  ///< by service, by age
  std::vector<std::pair<const control::TaskRecord*, const control::TaskHealth*>> health_;  ///< sorted
  // Instances mostly come service by service: what was found for the last one.
  mutable const control::ServiceRecord* last_service_ = nullptr;
  mutable const control::ServiceRecord* last_dated_ = nullptr;
  mutable std::string last_version_;  ///< of `last_dated_`, as text
  mutable const workload::Service* last_definition_ = nullptr;
  mutable std::vector<int> last_ports_;  ///< of `last_definition_`
};

/// The definition of that time; null when it is not kept.
const workload::Service* version_of(const control::ServiceRecord& record, const std::string& version);

/// The definition that was in force at a time; null when it was not there yet, or is not kept.
const workload::Service* definition_at(const control::ServiceRecord& record, TimePoint time);

/// The group that an id such as "/shop/*" means, all apps of which are asked for; none for an app's.
std::optional<std::string> group_of(const std::string& id);
/// "/shop/web" of "shop_web.instance-6fcb…._app.1"; "" when it is no id of a task.
std::string app_of_task_id(std::string_view task_id);
/// Without what tells the attempts of one instance apart.
std::string instance_id(const control::TaskRecord& task);

}  // namespace drover::api::marathon_v2
