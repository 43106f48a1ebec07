#pragma once

// Shims that only pretend, and outlive a daemon that is killed again and again: they end in their own time
// and keep how, until somebody asks. What no machine would allow, they say.

#include <fmt/format.h>

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "container/containerizer.h"
#include "control/testing/simulated_engine.h"

namespace drover::engine::testing {

/// Thrown where the daemon is killed.
struct Killed {};

class Shims {
 public:
  /// The world they live in.
  struct Surroundings {
    std::function<TimePoint()> now;
    std::function<void(std::chrono::milliseconds, std::function<void()>)> later;
    std::function<container::Watcher()> watcher;  ///< of the daemon that is there
    std::function<void(std::string)> is_wrong;
  };
  struct Folder {
    int attempt = 0;
    bool started = false;  ///< this attempt
    bool alive = false;
    bool stopped = false;
    bool clean = true;
    std::vector<std::string> gpus;
    std::string record;
    TimePoint started_at{};
    std::optional<workload::Ending> ending;
  };

  /// The command of a task that does not end by itself.
  static constexpr const char* kEndless = "endless";

  Shims(control::testing::Random& random, Surroundings around)
      : random_(random), around_(std::move(around)) {}

  const std::map<std::string, Folder>& folders() const { return folders_; }
  /// The daemon is gone: nobody is told any more.
  void lose_daemon() {
    watched_.clear();
    kills_next = false;
  }
  bool calm = false;        ///< nothing goes wrong any more
  bool kills_next = false;  ///< the daemon is killed in the middle of the next call
  int starts = 0;

  class Connection;

 private:
  static constexpr int kOftenFails = 20;  ///< in a thousand

  bool happens(int in_thousand) { return !calm && control::testing::chance(random_, in_thousand); }

  /// A call by the daemon, which may be killed before or after it has an effect.
  template <typename Answer>
  Answer call(const std::function<Answer()>& effect) {
    const bool dies = std::exchange(kills_next, false);
    if (dies && happens(500)) throw Killed{};
    if (happens(kOftenFails)) return fail(ErrorKind::kUnavailable, "it cannot be done now");
    auto answer = effect();
    if (dies) throw Killed{};
    return answer;
  }

  Status launch(const container::Launch& launch) {
    const auto& id = launch.task.id;
    auto& folder = folders_[id];
    if (folder.started && folder.attempt == launch.attempt) {
      notify(id);
      return {};
    }
    if (folder.alive) around_.is_wrong(fmt::format("'{}' is started beside its own last attempt", id));
    if (launch.may_start) DROVER_CHECK_OK(launch.may_start());
    for (const auto& [other, one] : folders_)
      for (const auto& gpu : one.gpus)
        if (one.alive && std::ranges::count(launch.gpu_uuids, gpu) > 0)
          around_.is_wrong(fmt::format("'{}' gets {}, which '{}' has", id, gpu, other));
    if (!attempts_.insert({id, launch.attempt}).second)
      around_.is_wrong(fmt::format("attempt {} at '{}' is started twice", launch.attempt, id));
    ++starts;
    folder = {launch.attempt, true, true, false, false, launch.gpu_uuids, launch.record, around_.now(), {}};
    const auto longest = launch.task.origin.kind == workload::OriginKind::kService ? std::chrono::hours(96)
                                                                                   : std::chrono::minutes(15);
    watched_.erase(id);  // of the attempt before, whose end was told
    if (launch.task.command->front() != kEndless) end_within(id, launch.attempt, longest);
    notify(id);
    return {};
  }

  void end_within(const std::string& id, int attempt, std::chrono::milliseconds longest) {
    around_.later(std::chrono::milliseconds(control::testing::pick(random_, 100, longest.count())),
                  [this, id, attempt] { ends(id, attempt); });
  }

  void ends(const std::string& id, int attempt) {
    const auto found = folders_.find(id);
    if (found == folders_.end() || !found->second.alive || found->second.attempt != attempt) return;
    end(found->second);
    if (watched_.contains(id)) notify(id);
  }
  void end(Folder& folder) {
    folder.alive = false;
    workload::Ending ending;
    ending.exit_status = happens(300) ? 1 : 0;
    ending.stopped = folder.stopped;
    ending.lost = happens(5);
    ending.finished_at = around_.now();
    folder.ending = ending;
  }

  /// What there is to be known of it; from now on the daemon hears of it.
  void notify(const std::string& id) {
    const auto& folder = folders_.at(id);
    if (watched_.insert(id).second) around_.watcher().started(id, {1, folder.started_at, "oci"});
    if (folder.ending) around_.watcher().ended(id, *folder.ending);
  }

  Status stop(const std::string& id, bool force) {
    const auto found = folders_.find(id);
    if (found == folders_.end() || !found->second.alive) return {};
    found->second.stopped = true;
    end_within(id, found->second.attempt, std::chrono::milliseconds(force ? 200 : 10'000));
    return {};
  }

  Result<container::Found> recover(const std::string& id, int attempt) {
    const auto found = folders_.find(id);
    if (found == folders_.end() || !found->second.started || found->second.attempt != attempt) {
      if (found != folders_.end() && found->second.alive)
        around_.is_wrong(fmt::format("attempt {} at '{}' is looked for while attempt {} runs", attempt, id,
                                     found->second.attempt));
      return container::Found::kNever;
    }
    notify(id);
    return found->second.alive ? container::Found::kAlive : container::Found::kEnded;
  }

  Status clean(const std::string& id) {
    const auto found = folders_.find(id);
    if (found == folders_.end()) return {};
    if (found->second.alive) return fail(ErrorKind::kConflict, "it still runs");
    found->second.clean = true;
    return {};
  }

  Status forget(const std::string& id) {
    if (folders_.contains(id) && folders_.at(id).alive)
      around_.is_wrong(fmt::format("'{}' is forgotten while it runs", id));
    watched_.erase(id);
    folders_.erase(id);
    return {};
  }

  control::testing::Random& random_;
  Surroundings around_;
  std::map<std::string, Folder> folders_;
  std::set<std::string> watched_;                   ///< by the daemon that is there
  std::set<std::pair<std::string, int>> attempts_;  ///< that were started
};

/// What one daemon has of them.
class Shims::Connection final : public container::Containerizer {
 public:
  explicit Connection(Shims& shims) : shims_(shims) {}

  Status launch(const container::Launch& launch) override {
    return shims_.call<Status>([&] { return shims_.launch(launch); });
  }
  Status stop(const std::string& id, bool force) override {
    return shims_.call<Status>([&] { return shims_.stop(id, force); });
  }
  Result<container::Found> recover(const std::string& id, int attempt) override {
    return shims_.call<Result<container::Found>>([&] { return shims_.recover(id, attempt); });
  }
  Status clean(const std::string& id) override {
    return shims_.call<Status>([&] { return shims_.clean(id); });
  }
  Status forget(const std::string& id) override {
    return shims_.call<Status>([&] { return shims_.forget(id); });
  }
  std::vector<std::string> known() const override {
    std::vector<std::string> ids;
    for (const auto& [id, folder] : shims_.folders_) ids.push_back(id);
    return ids;
  }
  Result<container::FolderView> examine(const std::string& id) const override {
    const auto& folder = shims_.folders_.at(id);
    return container::FolderView{folder.alive, folder.record};
  }
  Status end(const std::string& id) override {
    shims_.around_.is_wrong(fmt::format("'{}' is ended, as if nobody knew it", id));
    return {};
  }
  Result<std::string> quarantine(const std::string& id) override {
    shims_.around_.is_wrong(fmt::format("'{}' is put away, as if nobody knew it", id));
    return "/quarantine/" + id;
  }
  Quarantine quarantined() const override { return {}; }
  std::string sandbox(const std::string& id) const override { return "/sandbox/" + id; }

 private:
  Shims& shims_;
};

}  // namespace drover::engine::testing
