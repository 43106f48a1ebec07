#include "pods/attempt.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace drover::pods {
namespace {

template <typename State>
std::vector<State> all(int count) {
  std::vector<State> states;
  for (int i = 0; i < count; ++i) states.push_back(static_cast<State>(i));
  return states;
}

TEST(Attempt, EveryPairHasAnAnswerAndNoneHasTwo) {
  for (const auto expected : all<Expected>(kExpectedStates))
    for (const auto actual : all<Actual>(kActualStates)) {
      const auto reaction = react(expected, actual);
      EXPECT_FALSE(reaction.news != News::kNone && reaction.deed != Deed::kNone)
          << to_string(expected) << ", " << to_string(actual)
          << ": what the journal hears of decides what is done, so it comes first";
      EXPECT_FALSE(to_string(reaction.news).empty() || to_string(reaction.deed).empty());
    }
}

TEST(Attempt, OnlyWhatIsToRunIsMadeAndOnlyWhatIsRecordedIsReleased) {
  for (const auto expected : all<Expected>(kExpectedStates))
    for (const auto actual : all<Actual>(kActualStates)) {
      const auto deed = react(expected, actual).deed;
      const auto where = std::string(to_string(expected)) + ", " + std::string(to_string(actual));
      if (deed == Deed::kCreate) {
        EXPECT_EQ(where, "waiting, absent");
      }
      if (deed == Deed::kDelete) {
        EXPECT_TRUE(expected == Expected::kNothing || expected == Expected::kCancelled ||
                    expected == Expected::kStopping)
            << where;
      }
      const bool never_ran = actual == Actual::kUnplacedLeaving;
      if (deed == Deed::kRelease) {
        EXPECT_TRUE(expected == Expected::kNothing || never_ran) << where;
      }
    }
}

/// A cluster and a control plane that may die at any moment, and hears late of what happens.
class World {
 public:
  struct Pod {
    Actual actual = Actual::kUnplaced;
    int status = 0;  ///< with which it ends, or would
  };
  /// A task as the journal has it.
  struct Task {
    Expected expected = Expected::kWaiting;
    int attempt = 0;
    bool preempted = false;
    bool over = false;
    std::string how;  ///< of one that is over
  };

  static std::string name(int task, int attempt) {
    return std::to_string(task) + "-" + std::to_string(attempt);
  }

  void submit() { tasks_.emplace(static_cast<int>(tasks_.size()), Task{}); }

  void stop(int id) {
    auto& task = tasks_.at(id);
    if (task.over) return;
    if (task.expected == Expected::kWaiting) task.expected = Expected::kCancelled;
    if (task.expected == Expected::kPlaced || task.expected == Expected::kRunning)
      task.expected = Expected::kStopping;
    task.preempted = false;
  }

  // What happens in the cluster.

  void place(Pod& pod) {
    if (pod.actual == Actual::kUnplaced) pod.actual = Actual::kPlaced;
  }
  void begin(const std::string& name, Pod& pod) {
    if (pod.actual != Actual::kPlaced) return;
    pod.actual = Actual::kRunning;
    RC_ASSERT(ran_.insert(name).second);  // no attempt twice
    const auto task = name.substr(0, name.find('-'));
    for (const auto& [other, its] : cluster_)  // nor two attempts at once
      RC_ASSERT(other == name || other.substr(0, other.find('-')) != task || is_over(its.actual) ||
                !ran_.contains(other));
  }
  void end(Pod& pod) {
    if (is_running(pod.actual))
      pod.actual = pod.actual == Actual::kRunningEvicted ? Actual::kEndedEvicted : Actual::kEnded;
    // A node that is asked to end what it has not begun.
    if (pod.actual == Actual::kPlacedLeaving || pod.actual == Actual::kPlacedEvicted)
      pod.actual = Actual::kRefused;
  }
  void refuse(Pod& pod) {
    if (pod.actual == Actual::kPlaced) pod.actual = Actual::kRefused;
  }
  void lose(Pod& pod) {
    if (!is_over(pod.actual) && pod.actual != Actual::kUnplaced && pod.actual != Actual::kUnplacedLeaving)
      pod.actual = Actual::kLost;
  }
  void remove(Pod& pod) { leave(pod, false); }
  /// Somebody takes the finalizer off by force, long after it was made.
  void wipe(const std::string& name) {
    const auto& task = tasks_.at(std::stoi(name));
    if (task.expected == Expected::kWaiting || task.expected == Expected::kCancelled || task.over) return;
    if (name != World::name(std::stoi(name), task.attempt)) return;
    cluster_.erase(name);
    in_flight_.erase(name);
  }
  /// What a control plane had written when it died arrives now.
  void land() {
    for (const auto& name : std::exchange(in_flight_, {})) act(name, Deed::kCreate);
  }
  void evict(const std::string& name, Pod& pod) {
    leave(pod, true);
    if (pod.actual == Actual::kPlacedEvicted || pod.actual == Actual::kRunningEvicted) evicted_.insert(name);
  }

  // The control plane.

  /// It hears of one pod as it is now; of others it may know older things.
  void hear(const std::string& name) {
    const auto found = cluster_.find(name);
    if (found == cluster_.end())
      seen_.erase(name);
    else
      seen_[name] = found->second;
  }
  /// It begins anew, with a list of what is there.
  void restart() { seen_ = cluster_; }

  enum class Death { kNone, kBefore, kAfter };
  /// Returns whether there was anything to do. It hears of what it does itself, unless it dies of it: then it
  /// begins anew.
  bool look_at(const std::string& name, Death death) {
    const auto seen = seen_.find(name);
    const int id = std::stoi(name);
    const int attempt = std::stoi(name.substr(name.find('-') + 1));
    const auto task = tasks_.find(id);
    const bool known = task != tasks_.end() && !task->second.over && task->second.attempt == attempt;
    const auto reaction = react(known ? task->second.expected : Expected::kNothing,
                                seen == seen_.end() ? Actual::kAbsent : seen->second.actual);
    const int status = seen == seen_.end() ? 0 : seen->second.status;
    if (reaction == Reaction{}) return false;
    if (death == Death::kBefore && reaction.deed == Deed::kCreate) in_flight_.insert(name);
    if (death != Death::kBefore && reaction.deed != Deed::kNone) {
      act(name, reaction.deed);
      hear(name);
    }
    if (death != Death::kNone) restart();
    if (death == Death::kBefore) return true;
    if (reaction.news != News::kNone) tell(task->second, name, reaction.news, status);
    return true;
  }

  /// Nothing happens in the cluster: the journal knows what there is, and what is to go was told so.
  void stand_still() {
    until_nothing_is_done([] {});
    for (const auto& [name, pod] : cluster_) {
      const auto& task = tasks_.at(std::stoi(name));
      const bool is_its = !task.over && name == World::name(std::stoi(name), task.attempt);
      const bool is_to_go =
          !is_its || task.expected == Expected::kCancelled || task.expected == Expected::kStopping;
      RC_ASSERT(!is_over(pod.actual) && pod.actual != Actual::kUnplacedLeaving);
      if (is_to_go) RC_ASSERT(is_leaving(pod.actual));
      if (is_to_go) continue;
      RC_ASSERT(!is_evicted(pod.actual));
      RC_ASSERT(task.expected == (is_running(pod.actual)            ? Expected::kRunning
                                  : pod.actual == Actual::kUnplaced ? Expected::kWaiting
                                                                    : Expected::kPlaced));
    }
  }

  /// Nothing more happens but what has to: whatever is to run comes to run, and the journal knows.
  void come_to_rest() {
    until_nothing_is_done([this] {
      for (auto& [name, pod] : cluster_) {
        place(pod);
        if (pod.actual == Actual::kPlaced) begin(name, pod);
        if (is_leaving(pod.actual)) end(pod);
      }
    });
    for (const auto& [name, pod] : cluster_) RC_ASSERT(pod.actual == Actual::kRunning);
    for (const auto& [id, task] : tasks_) {
      RC_ASSERT(task.over || task.expected == Expected::kRunning);
      RC_ASSERT(task.over != cluster_.contains(name(id, task.attempt)));
    }
    RC_ASSERT(cluster_.size() <= tasks_.size());
  }

  /// All are asked to end: everything is over then, and nothing is left.
  void come_to_an_end() {
    for (const auto& [id, unused] : tasks_) stop(id);
    until_nothing_is_done([this] {
      for (auto& [name, pod] : cluster_) {
        place(pod);
        if (is_leaving(pod.actual)) end(pod);
      }
    });
    RC_ASSERT(cluster_.empty());
    for (const auto& [id, task] : tasks_) RC_ASSERT(task.over);
  }

  std::set<std::string> names() const {
    std::set<std::string> all;
    for (const auto& [name, pod] : cluster_) all.insert(name);
    for (const auto& [name, pod] : seen_) all.insert(name);
    for (const auto& [id, task] : tasks_) all.insert(name(id, task.attempt));
    return all;
  }
  std::map<std::string, Pod>& cluster() { return cluster_; }
  std::size_t tasks() const { return tasks_.size(); }

 private:
  static bool is_over(Actual actual) {
    return actual == Actual::kEnded || actual == Actual::kEndedEvicted || actual == Actual::kRefused ||
           actual == Actual::kLost;
  }
  static bool is_evicted(Actual actual) {
    return actual == Actual::kPlacedEvicted || actual == Actual::kRunningEvicted ||
           actual == Actual::kEndedEvicted;
  }
  static bool is_leaving(Actual actual) {
    return actual == Actual::kPlacedLeaving || actual == Actual::kPlacedEvicted ||
           actual == Actual::kRunningLeaving || actual == Actual::kRunningEvicted;
  }
  template <typename Happen>
  void until_nothing_is_done(const Happen& happen) {
    for (bool busy = true; busy;) {
      happen();
      restart();
      busy = false;
      for (const auto& name : names()) busy = look_at(name, Death::kNone) || busy;
    }
  }
  static bool is_running(Actual actual) {
    return actual == Actual::kRunning || actual == Actual::kRunningLeaving ||
           actual == Actual::kRunningEvicted;
  }
  static void leave(Pod& pod, bool evicted) {
    if (pod.actual == Actual::kUnplaced) pod.actual = Actual::kUnplacedLeaving;
    if (pod.actual == Actual::kPlaced) pod.actual = evicted ? Actual::kPlacedEvicted : Actual::kPlacedLeaving;
    if (pod.actual == Actual::kRunning)
      pod.actual = evicted ? Actual::kRunningEvicted : Actual::kRunningLeaving;
  }

  void act(const std::string& name, Deed deed) {
    if (deed == Deed::kCreate) {
      cluster_.try_emplace(name,
                           Pod{Actual::kUnplaced, static_cast<int>(std::hash<std::string>()(name) % 3)});
      return;
    }
    const auto found = cluster_.find(name);
    if (found == cluster_.end()) return;
    if (deed == Deed::kDelete) return leave(found->second, false);
    RC_ASSERT(is_over(found->second.actual) || found->second.actual == Actual::kUnplacedLeaving);
    cluster_.erase(found);
  }

  void tell(Task& task, const std::string& name, News news, int status) {
    const auto finish = [&](std::string how) {
      task.over = true;
      task.how = std::move(how);
    };
    const auto put_back = [&] {
      ++task.attempt;
      task.expected = Expected::kWaiting;
      task.preempted = false;
    };
    const bool stopping = task.expected == Expected::kStopping || task.expected == Expected::kCancelled;
    switch (news) {
      case News::kPlaced:
        task.expected = Expected::kPlaced;
        break;
      case News::kStarted:
        task.expected = Expected::kRunning;
        break;
      case News::kEvicted:
        task.expected = Expected::kStopping;
        task.preempted = true;
        break;
      case News::kEnded:
        RC_ASSERT(ran_.contains(name));  // and with its own status
        RC_ASSERT(status == static_cast<int>(std::hash<std::string>()(name) % 3));
        RC_ASSERT(task.preempted || stopping || !evicted_.contains(name));  // what made room goes on later
        if (task.preempted) return put_back();
        return finish("ended");
      case News::kNeverRan:
        RC_ASSERT(!ran_.contains(name));
        RC_ASSERT(stopping);
        if (task.preempted) return put_back();
        return finish("never ran");
      case News::kPutBack:
        RC_ASSERT(!ran_.contains(name));
        return put_back();
      case News::kLost:
        return finish("lost");
      case News::kNone:
        break;
    }
  }

  std::map<int, Task> tasks_;           ///< the journal
  std::map<std::string, Pod> cluster_;  ///< as it is
  std::map<std::string, Pod> seen_;     ///< as the control plane has heard
  std::set<std::string> in_flight_;     ///< pods that were to be made by one that died
  std::set<std::string> evicted_;       ///< attempts that were to make room
  std::set<std::string> ran_;           ///< attempts of which a container was started
};

TEST(Attempt, EveryTaskEndsOnceWhateverHappensAndNothingIsLeft) {
  EXPECT_TRUE(rc::check([] {
    World world;
    world.submit();
    const int steps = *rc::gen::inRange(1, 120);
    for (int step = 0; step < steps; ++step) {
      const auto any = [](auto&& container) {
        auto at = container.begin();
        std::advance(at, *rc::gen::inRange<std::size_t>(0, container.size()));
        return at;
      };
      const auto any_name = [&] {
        const auto names = world.names();
        return *any(names);
      };
      const int what = *rc::gen::inRange(0, 14);
      if (what == 0 && world.tasks() < 4) world.submit();
      if (what == 1 && *rc::gen::inRange(0, 4) == 0)
        world.stop(*rc::gen::inRange(0, static_cast<int>(world.tasks())));
      if (what == 2) world.restart();
      if (what == 2 && *rc::gen::inRange(0, 4) == 0) world.land();
      if (what == 3 || what == 4) world.hear(any_name());
      if (what >= 5 && what <= 8)
        world.look_at(any_name(),
                      *rc::gen::weightedElement<World::Death>(
                          {{6, World::Death::kNone}, {1, World::Death::kBefore}, {1, World::Death::kAfter}}));
      if (what < 9 || world.cluster().empty()) continue;
      auto& [name, pod] = *any(world.cluster());
      switch (*rc::gen::inRange(0, 10)) {
        case 0:
        case 1:
          world.place(pod);
          break;
        case 2:
        case 3:
          world.begin(name, pod);
          break;
        case 4:
          world.end(pod);
          break;
        case 5:
          world.refuse(pod);
          break;
        case 6:
          world.remove(pod);
          break;
        case 7:
          world.evict(name, pod);
          break;
        case 8:
          world.wipe(std::string(name));
          break;
        default:
          world.lose(pod);
      }
    }
    world.land();
    world.stand_still();
    world.come_to_rest();
    world.come_to_an_end();
  }));
}

}  // namespace
}  // namespace drover::pods
