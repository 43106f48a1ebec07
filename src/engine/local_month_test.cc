// A month of kill -9 and of failed writes, on the real engine and the real journal: nothing is lost, doubled
// or left behind. DROVER_MONTH_FAULTS sets how many there are of each kind, and all lasts as long as they
// need; DROVER_SEED plays another one. A build with a sanitizer is many times slower, and plays less.

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "control/testing/schedules.h"
#include "control/testing/services.h"
#include "engine/testing/local_fixture.h"
#include "engine/testing/shims.h"

namespace drover::engine {
namespace {

using namespace std::chrono_literals;
using control::TaskState;
using testing::Killed;

constexpr int kGpus = 8;
constexpr long kFaultsOfAMonth = 10'000;
constexpr std::chrono::milliseconds kBetweenFaults =
    std::chrono::milliseconds(std::chrono::days(30)) / kFaultsOfAMonth;

long setting_of_month(const char* name, long fallback) {
  const char* text = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nobody changes it
  return text == nullptr ? fallback : std::strtol(text, nullptr, 10);
}

class LocalMonthTest : public testing::LocalEngineTest {
 protected:
  LocalMonthTest() {
    disk_.waits_for_disk = false;
    limits_.stored_bytes = 64 << 10;  // so that ended tasks are forgotten to make room
  }

  /// Until there were so many of each kind.
  void live(long faults) {
    start();
    kill_sometimes();
    break_disk_sometimes();
    people_do_things();
    machine_changes();
    tidy_up();
    while (wrong_.empty() && std::min<long>(kills_, failed_writes()) < faults) run_until(now_ + 1h);
  }

  /// No trouble any more: what was accepted comes to its end, and all of it can go.
  void settle() {
    calm_ = shims_.calm = true;
    shims_.kills_next = disk_is_dying_ = false;
    disk_.recover();
    dies_in_ = 0;
    run_until(now_ + 10min);
    machine_ = node(kGpus);
    guarded([&] { engine_->set_machine(machine_); });
    guarded([&] { define_or_remove(true); });
    run_until(now_ + std::chrono::days(2));
    if (!wrong_.empty()) return;
    for (const auto& [id, record] : engine_->state().tasks)
      expect(control::is_final(record.state), [&] { return fmt::format("'{}' does not end", id); });
    guarded([&] { remove_ended(true); });
    run_until(now_ + 1h);
    // The second of two submissions takes note of what the first left.
    for (int i = 0; i < 2; ++i) {
      guarded([&] { submit_task(); });
      run_until(now_ + 10h);
      guarded([&] { remove_ended(true); });
      run_until(now_ + 1h);
    }
    expect(shims_.folders().empty(), [] { return "folders are left of forgotten tasks"; });
    expect(engine_->state().tasks.empty(), [] { return "tasks are left"; });
    crash();
    run_until(now_ + 1h);
    if (engine_)
      expect(engine_->state().forgotten.size() <= 1, [&] {
        return fmt::format("{} ids of forgotten tasks are left", engine_->state().forgotten.size());
      });
  }

  std::string wrong_;  ///< what is; "" as long as nothing is
  long kills_ = 0;
  int accepted_ = 0, refused_ = 0, put_back_ = 0;
  int starts() const { return shims_.starts; }
  int failed_writes() const { return disk_.failures() - failures_of_dying_; }

 private:
  std::int64_t any(std::int64_t least, std::int64_t most) {
    return control::testing::pick(random_, least, most);
  }
  std::chrono::milliseconds any_time(std::chrono::milliseconds least, std::chrono::milliseconds most) {
    return std::chrono::milliseconds(any(least.count(), most.count()));
  }
  bool happens(int in_thousand) { return control::testing::chance(random_, in_thousand); }
  void later(std::chrono::milliseconds delay, std::function<void()> what) {
    agenda_.emplace(now_ + delay, std::move(what));
  }
  /// Again and again until all is calm.
  void sometimes(std::chrono::milliseconds about, std::function<void()> what) {
    if (calm_) return;
    later(any_time(1ms, 2 * about), [this, about, what] {
      sometimes(about, what);
      if (!calm_) what();
    });
  }
  void expect(bool holds, const std::function<std::string()>& what) {
    if (!holds && wrong_.empty()) wrong_ = fmt::format("{} at {}", what(), format_time(now_));
  }

  // The daemon

  void run_until(TimePoint end) {
    while (!agenda_.empty() && agenda_.begin()->first <= end && wrong_.empty()) {
      auto next = agenda_.extract(agenda_.begin());
      now_ = next.key();
      guarded(next.mapped());
    }
    now_ = end;
  }

  /// Whatever the daemon does may be its last.
  void guarded(const std::function<void()>& what) {
    try {
      what();
      while (engine_ && !work_.empty()) {
        live_on();
        auto work = std::move(work_.front());
        work_.pop_front();
        work();
      }
      written_ = false;
      live_on();
      check();
    } catch (const Killed&) {
      crash();
    }
  }
  void live_on() {
    if (disk_.failures() >= disk_recovers_at_ && !disk_is_dying_) disk_.recover();
    if (disk_.dead() || (dies_in_ > 0 && --dies_in_ == 0)) throw Killed{};
  }

  void crash() {
    if (!engine_) return;
    ++kills_;
    const bool in_doubt = disk_.dead() || std::exchange(written_, false);
    before_.reset();
    if (!in_doubt) before_ = engine_->state().tasks;
    const int failures = disk_.failures();
    disk_.die();
    writes_.clear();
    engine_.reset();
    disk_.recover();
    failures_of_dying_ += disk_.failures() - failures + (in_doubt ? 1 : 0);
    disk_is_dying_ = false;
    work_.clear();
    ++life_;
    dies_in_ = 0;
    wakes_at_.reset();
    shims_.lose_daemon();
    later(any_time(100ms, 60s), [this] { start(); });
  }

  void start() {
    if (engine_) return;
    const auto started =
        open(machine_, ports_of_this_life(), std::make_unique<testing::Shims::Connection>(shims_));
    if (disk_.dead()) throw Killed{};
    expect(started.has_value(), [&] { return to_string(started.error()); });
    if (!started) return;
    up_since_ = now_;
    notice_watch_ = engine_->watch([this](const control::Notice& notice) {
      const auto* moved = std::get_if<control::notice::TaskMoved>(&notice);
      if (moved == nullptr) return;
      take_note(moved->record);
      if (moved->record.state == TaskState::kQueued && moved->before) ++put_back_;
    });
    for (const auto& [id, record] : engine_->state().tasks) take_note(record);
  }

  Ports ports_of_this_life() {
    auto all = ports();
    all.pool = all.slow_pool = [this](uid_t, Work work) {
      later(any_time(0ms, happens(100) ? 60s : 500ms), [this, work = std::move(work), life = life_] {
        if (life == life_) work();
      });
    };
    all.journal = [this](Work work) {
      // A disk that does not answer for long holds up changes alone.
      writes_at_ = std::max(writes_at_, now_) + any_time(0ms, happens(20) ? 30s : 20ms);
      writes_.push_back(std::move(work));
      later(writes_at_ - now_, [this, life = life_] {
        if (life != life_) return;
        const auto next = std::move(writes_.front());
        writes_.pop_front();
        written_ = true;
        next();
      });
    };
    all.wake_at = [this](TimePoint at) {
      if (wakes_at_ && *wakes_at_ <= at) return;
      wakes_at_ = std::max(at, now_ + 1ms);
      later(*wakes_at_ - now_, [this, at = *wakes_at_, life = life_] {
        if (life != life_ || wakes_at_ != at) return;
        wakes_at_.reset();
        engine_->tick();
      });
    };
    all.strangers = nullptr;
    all.task_space = nullptr;
    all.events.most = 200;  // each life counts them, and there are thousands
    return all;
  }

  // Trouble

  void kill_sometimes() {
    sometimes(kBetweenFaults, [this] {
      if (!engine_ || dies_in_ > 0 || disk_is_dying_ || shims_.kills_next) return;
      switch (any(0, 3)) {
        case 0:
          throw Killed{};
        case 1:
          dies_in_ = static_cast<int>(any(1, 30));
          break;
        case 2:
          disk_.die(static_cast<int>(any(1, 12)));
          disk_is_dying_ = true;
          break;
        default:
          shims_.kills_next = true;
      }
      // When nothing of it comes, it is killed as it stands.
      later(any_time(1s, kBetweenFaults / 2), [this, life = life_] {
        if (life == life_ && !calm_) throw Killed{};
      });
    });
  }
  void break_disk_sometimes() {
    sometimes(kBetweenFaults, [this] {
      if (disk_is_dying_) return;
      disk_.fail(happens(500) ? SQLITE_FULL : SQLITE_IOERR_WRITE, static_cast<int>(any(0, 5)));
      disk_recovers_at_ = disk_.failures() + static_cast<int>(any(1, 2));
    });
  }
  void machine_changes() {
    sometimes(2h, [this] {
      machine_ = node(kGpus);
      for (auto& device : machine_.inventory.devices)
        if (happens(60)) device.unhealthy = "XID 79: it has fallen off the bus";
      if (engine_) engine_->set_machine(machine_);
    });
  }

  // People

  static Caller user(int number) {
    Caller caller;
    caller.user.uid = static_cast<uid_t>(1000 + number);
    caller.user.name = fmt::format("user{}", number);
    return caller;
  }

  void people_do_things() {
    sometimes(2min, [this] {
      if (!engine_) return;
      switch (any(0, 19)) {
        case 0:
          return stop_something();
        case 1:
          return define_or_remove(false);
        case 2:
        case 3:
          return submit_some_gang();
        default:
          return submit_task();
      }
    });
  }

  void answered(bool accepted, const std::vector<std::string>& ids) {
    ++(accepted ? accepted_ : refused_);
    for (const auto& id : ids) {
      if (accepted) known_.try_emplace(id, std::nullopt);
      // Nobody was answered by a daemon that was killed.
      if (!accepted && !disk_.dead()) refused_ids_.insert(id);
    }
  }

  /// What somebody asks for: `run` says whether the state takes it. A try that could not be kept is followed
  /// by another one, with ids of its own.
  void ask(std::function<bool()> run, int members) {
    struct Tried {
      std::vector<std::string> ids;
      std::vector<std::string> given_up;
      bool taken = false;
    };
    const auto tried = std::make_shared<Tried>();
    engine_->transact(
        [this, tried, run = std::move(run), members] {
          std::ranges::move(tried->ids, std::back_inserter(tried->given_up));
          tried->ids.clear();
          const auto before = ids_;
          tried->taken = run();
          for (int number = before + 1; number <= ids_; ++number) {
            const auto id = fmt::format("t{}", number);
            if (members == 1) tried->ids.push_back(id);
            for (int rank = 0; members > 1 && rank < members; ++rank)
              tried->ids.push_back(control::member_id(id, rank));
          }
        },
        [this, tried](const Status& kept) {
          answered(kept && tried->taken, tried->ids);
          for (const auto& id : tried->given_up) refused_ids_.insert(id);
        });
  }

  void submit_task() {
    workload::TaskRequest request;
    auto& task = request.task;
    task.name = "job";
    task.command = {"true"};
    const auto gpus = static_cast<int>(any(0, 3));
    if (gpus > 0) task.resources.gpus = {{gpus, {}}};
    task.priority = static_cast<int>(any(-2, 0)) * 10;
    if (happens(100)) {
      task.command = {testing::Shims::kEndless};
      task.timeout = any_time(5min, 60min);
    }
    const auto caller = user(static_cast<int>(any(0, 2)));
    ask([this, request, caller] { return engine_->submit(caller, request).has_value(); }, 1);
  }

  void submit_some_gang() {
    const auto size = static_cast<int>(any(2, 4));
    const auto caller = user(static_cast<int>(any(0, 2)));
    ask([this, size, caller] { return engine_->submit_gang(caller, gang_of(size, 1)).has_value(); }, size);
  }

  void stop_something() {
    const auto& active = engine_->state().active;
    if (active.empty()) return;
    auto chosen = active.begin();
    std::advance(chosen, any(0, static_cast<std::int64_t>(active.size()) - 1));
    engine_->stop({}, std::string(*chosen), happens(300), [](const auto&) {});
  }

  void change(const control::Event& event) {
    engine_->transact([this, event] { (void)engine_->change(event); }, {});
  }
  /// A service and a schedule, which people change their minds about.
  void define_or_remove(bool remove) {
    auto service = control::testing::service("/serve", static_cast<int>(any(0, 2)), 1);
    service.task.environment.edit()["VERSION"] = std::to_string(any(1, 3));
    service.task.priority = 5;
    auto schedule = control::testing::Scheduler::schedule("often", "R/2023-11-15T00:00:00Z/PT30M");
    const bool gone = remove || happens(200);
    if (gone) {
      change(control::event::ServicesChanged{.removed = {service.id}, .force = true});
      change(control::event::ScheduleRemoved{schedule.name});
    } else {
      change(control::event::ServicesChanged{.put = {service}, .force = happens(500)});
      change(control::event::ScheduleDefined{schedule});
    }
  }

  void tidy_up() {
    sometimes(1h, [this] {
      check_clean();
      remove_ended(false);
    });
  }
  void remove_ended(bool all) {
    if (!engine_) return;
    std::vector<std::string> ids;
    for (const auto& [at, id] : engine_->state().ended)
      if (all || happens(800)) ids.push_back(id);
    for (const auto& id : ids) engine_->transact([this, id] { (void)engine_->remove({}, id); }, {});
  }

  // What holds at all times

  void take_note(const control::TaskRecord& record) {
    const auto& id = record.task.id;
    expect(!refused_ids_.contains(id), [&] { return fmt::format("'{}' was refused, and is there", id); });
    auto& known = known_[id];
    if (known) expect(known->state == record.state, [&] { return fmt::format("'{}' has two ends", id); });
    if (!control::is_final(record.state)) return;
    known = record;
    const auto folder = shims_.folders().find(id);
    if (folder != shims_.folders().end() && folder->second.started &&
        folder->second.attempt == record.preemptions)
      expect(folder->second.ending &&
                 (folder->second.ending->lost ? record.state == TaskState::kLost
                                              : record.exit_status == folder->second.ending->exit_status),
             [&] { return fmt::format("'{}' did not end as its record says", id); });
  }

  void check() {
    if (!engine_) return;
    const auto& state = engine_->state();
    if (before_) {
      for (const auto& [id, record] : *before_)
        expect(state.tasks.contains(id) || control::is_final(record.state),
               [&] { return fmt::format("'{}' is not as before the daemon was killed", id); });
      before_.reset();
    }
    for (auto known = known_.begin(); known != known_.end();) {
      const auto& [id, ended] = *known;
      const auto* record = state.find(id);
      expect(record != nullptr || ended, [&] { return fmt::format("'{}' was accepted and is gone", id); });
      if (record != nullptr && ended)
        expect(record->state == ended->state, [&] { return fmt::format("'{}' had ended otherwise", id); });
      known = record == nullptr ? known_.erase(known) : std::next(known);
    }
    std::set<std::string> gpus;
    for (const auto& id : state.active)
      for (const auto& uuid : control::uuids_of(state.tasks.at(id)))
        expect(gpus.insert(uuid).second, [&] { return fmt::format("{} was given twice", uuid); });
    for (const auto& [id, folder] : shims_.folders()) {
      if (!folder.alive) continue;
      const auto* record = state.find(id);
      expect(record != nullptr && control::owns_resources(record->state) &&
                 record->preemptions == folder.attempt && control::uuids_of(*record) == folder.gpus,
             [&] { return fmt::format("'{}' runs, and its record does not say so", id); });
    }
  }

  /// What ended before the daemon that is there was started, and was to be cleaned up by it.
  void check_clean() {
    if (!engine_ || now_ - up_since_ < 2min) return;
    for (const auto& [at, id] : engine_->state().ended)
      expect(at > up_since_ || !shims_.folders().contains(id) || shims_.folders().at(id).clean,
             [&] { return fmt::format("nobody cleans up after '{}'", id); });
  }

  control::testing::Random random_{static_cast<std::uint64_t>(setting_of_month("DROVER_SEED", 1))};
  std::multimap<TimePoint, std::function<void()>> agenda_;
  testing::Shims shims_{
      random_,
      {[this] { return now_; }, [this](auto delay, auto what) { later(delay, std::move(what)); },
       [this] { return engine_->watcher(); },
       [this](std::string what) { expect(false, [&] { return what; }); }}};
  placement::Node machine_ = node(kGpus);
  bool calm_ = false;
  bool disk_is_dying_ = false;
  int disk_recovers_at_ = 0;   ///< in failures
  int failures_of_dying_ = 0;  ///< writes of a daemon that was dead already
  int dies_in_ = 0;            ///< pieces of work; 0: does not
  int life_ = 0;
  TimePoint up_since_{};
  std::optional<TimePoint> wakes_at_;
  std::deque<Work> writes_;  ///< for the thread of the journal
  TimePoint writes_at_{};    ///< when the thread of the journal is through with what it has
  bool written_ = false;     ///< it has written, and the strand does not know yet
  std::shared_ptr<void> notice_watch_;
  std::optional<control::Rows<control::TaskRecord>> before_;         ///< as it was killed
  std::map<std::string, std::optional<control::TaskRecord>> known_;  ///< with how it ended
  std::set<std::string> refused_ids_;
};

TEST_F(LocalMonthTest, NothingIsLostDoubledOrLeftBehind) {
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
  constexpr long kFaults = 200;
#else
  constexpr long kFaults = kFaultsOfAMonth;
#endif
  live(setting_of_month("DROVER_MONTH_FAULTS", kFaults));
  if (wrong_.empty()) settle();
  std::puts(
      fmt::format("{} kills, {} failed writes: {} submissions accepted, {} refused, {} starts, {} put back",
                  kills_, failed_writes(), accepted_, refused_, starts(), put_back_)
          .c_str());
  EXPECT_EQ(wrong_, "");
}

}  // namespace
}  // namespace drover::engine
