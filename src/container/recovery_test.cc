// The daemon may be killed at any moment, and so may a shim: no task runs twice, none is forgotten, and
// nothing of a lost one stays behind.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#include <charconv>
#include <chrono>
#include <thread>

#include "container/oci_fixture.h"
#include "container/task_folder.h"

namespace drover::container {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class RecoveryTest : public OciFixture {
 protected:
  pid_t spawn_daemon(const std::string& id) const {
    std::string program = fs::read_symlink("/proc/self/exe"), role = "daemon", state = state_, task = id;
    char* arguments[] = {program.data(), role.data(), state.data(), task.data(), nullptr};
    pid_t pid = 0;
    EXPECT_EQ(::posix_spawn(&pid, program.c_str(), nullptr, nullptr, static_cast<char**>(arguments), environ),
              0);
    return pid;
  }

  void kill_daemon(pid_t pid) const {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }

  /// From the start of a daemon until its task has run.
  std::chrono::duration<double> time_until_it_ran(const std::string& name) {
    const auto id = id_of(name);
    const auto begin = std::chrono::steady_clock::now();
    const auto daemon = spawn_daemon(id);
    for (int i = 0; i < 60'000 && !fs::exists(oci_->sandbox(id) + "/trace"); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const auto whole = std::chrono::steady_clock::now() - begin;
    kill_daemon(daemon);
    EXPECT_TRUE(oci_->recover(id, 0));
    EXPECT_EQ(observer_.await_ending(id).value().exit_status, 5);
    return whole;
  }

  pid_t shim_of(const std::string& id) const {
    std::ifstream lock(state_ + "/tasks/" + id + "/" + kLockFile);
    pid_t pid = 0;
    lock >> pid;
    return pid;
  }

  /// A zombie that nobody has reaped yet is not.
  static bool is_alive(pid_t pid) {
    std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
    std::string number, name, state;
    return static_cast<bool>(file >> number >> name >> state) && state != "Z" && state != "X";
  }

  void expect_nothing_left(const std::string& id, pid_t first_process) const {
    EXPECT_FALSE(is_alive(first_process));
    const auto hierarchies = find_hierarchies().value();
    for (const auto& hierarchy : hierarchies)
      EXPECT_FALSE(fs::exists(hierarchy.mount + "/drover/" + id)) << hierarchy.mount;
    std::ifstream file("/proc/self/mountinfo");
    const std::string mounts(std::istreambuf_iterator<char>(file), {});
    EXPECT_THAT(mounts, ::testing::Not(HasSubstr(id)));
    EXPECT_FALSE(fs::exists(state_ + "/tasks/" + id + "/bundle"));
  }
};

TEST_F(RecoveryTest, ATaskThatNobodyLaunchedNeverRan) {
  EXPECT_EQ(oci_->recover(id_of("nobody"), 0).value(), Found::kNever);
}

TEST_F(RecoveryTest, ARunningTaskIsFoundAgainAndHeardOf) {
  auto launch = launch_of("survivor", {"/bin/sh", "-c", "while [ ! -e go ]; do sleep 0.02; done; exit 5"});
  ASSERT_TRUE(oci_->launch(launch));
  const auto running = observer_.await_started(launch.task.id).value();
  oci_.reset();  // the daemon goes; the task does not notice
  TaskObserver later;
  auto made = make_oci(options(), later.watcher());
  ASSERT_TRUE(made);
  oci_ = std::move(made->containerizer);
  EXPECT_EQ(oci_->recover(launch.task.id, 0).value(), Found::kAlive);
  EXPECT_EQ(oci_->recover(launch.task.id, 0).value(), Found::kAlive);
  EXPECT_EQ(later.await_started(launch.task.id).value().pid, running.pid);
  std::ofstream(oci_->sandbox(launch.task.id) + "/go") << "";
  EXPECT_EQ(later.await_ending(launch.task.id).value().exit_status, 5);
  EXPECT_FALSE(later.disorder());
  EXPECT_TRUE(oci_->forget(launch.task.id));
  oci_.reset();
}

TEST_F(RecoveryTest, ATaskThatEndedMeanwhileIsHeardOf) {
  const auto launch = launch_of("meanwhile", {"/bin/sh", "-c", "exit 6"});
  ASSERT_EQ(run(launch).exit_status, 6);
  TaskObserver later;
  auto second = make_oci(options(), later.watcher()).value().containerizer;
  EXPECT_EQ(second->recover(launch.task.id, 0).value(), Found::kEnded);
  EXPECT_EQ(later.await_ending(launch.task.id).value().exit_status, 6);
  EXPECT_TRUE(later.await_started(launch.task.id));
}

TEST_F(RecoveryTest, KilledAtAnyMomentADaemonRunsItsTaskOnceAtMost) {
  constexpr int kRounds = 40;
  const auto whole = time_until_it_ran("undisturbed");
  int never = 0, alive = 0, ended = 0;
  for (int round = 0; round < kRounds; ++round) {
    const auto id = id_of("crash" + std::to_string(round));
    const auto daemon = spawn_daemon(id);
    std::this_thread::sleep_for(1.2 * whole * round / kRounds);
    kill_daemon(daemon);
    auto found = oci_->recover(id, 0);
    for (int i = 0; !found && found.error().kind == ErrorKind::kUnavailable && i < 100; ++i)
      found = oci_->recover(id, 0);  // as its hint says: a shim was about to end
    ASSERT_TRUE(found) << to_string(found.error());
    if (*found == Found::kNever) {
      ++never;
      EXPECT_EQ(run(traced_launch(id)).exit_status, 5);
    } else {
      *found == Found::kAlive ? ++alive : ++ended;
      EXPECT_EQ(observer_.await_ending(id).value().exit_status, 5);
    }
    EXPECT_EQ(sandbox_file(id, "trace"), "ran\n") << "round " << round;
  }
  RecordProperty("never", never);
  RecordProperty("alive", alive);
  RecordProperty("ended", ended);
}

TEST_F(RecoveryTest, ALaterAttemptRunsOnceAndKeepsTheLogs) {
  auto launch = launch_of("again", {"/bin/sh", "-c", "echo ran >> trace; echo $DROVER_ATTEMPT; sleep 1000"});
  ASSERT_TRUE(oci_->launch(launch));
  ASSERT_TRUE(observer_.await_started(launch.task.id));
  while (sandbox_file(launch.task.id, "stdout").empty()) ::usleep(10'000);
  ASSERT_TRUE(oci_->stop(launch.task.id, true));
  EXPECT_EQ(observer_.await_ending(launch.task.id).value().exit_status, 137);

  TaskObserver later;
  oci_.reset();
  oci_ = make_oci(options(), later.watcher()).value().containerizer;
  launch.attempt = 1;
  launch.task.command.edit()[2] = "echo ran >> trace; echo $DROVER_ATTEMPT; exit 7";
  EXPECT_EQ(oci_->recover(launch.task.id, 1).value(), Found::kNever) << "the end of the first is not its end";
  ASSERT_TRUE(oci_->launch(launch));
  EXPECT_EQ(later.await_ending(launch.task.id).value().exit_status, 7);
  EXPECT_EQ(oci_->recover(launch.task.id, 1).value(), Found::kEnded);
  EXPECT_EQ(sandbox_file(launch.task.id, "trace"), "ran\nran\n");
  EXPECT_EQ(sandbox_file(launch.task.id, "stdout.1"), "\n");
  EXPECT_EQ(sandbox_file(launch.task.id, "stdout"), "1\n");
  for (const auto& id : oci_->known()) EXPECT_TRUE(oci_->forget(id));
  oci_.reset();
}

TEST_F(RecoveryTest, ADaemonKilledBetweenTwoAttemptsLosesNeither) {
  // What may lie in the folder when the second attempt begins: all of the first, or a part of it.
  for (const char* gone : {"", kStatusFile, kLaunchSpecFile, kBundle}) {
    const auto id = id_of("between" + std::string(gone));
    TaskObserver observer;
    auto oci = make_oci(options(), observer.watcher()).value().containerizer;
    auto launch = traced_launch(id);
    ASSERT_TRUE(oci->launch(launch));
    ASSERT_EQ(observer.await_ending(id).value().exit_status, 5);
    if (*gone != '\0') fs::remove_all(state_ + "/tasks/" + id + "/" + gone);
    TaskObserver later;
    oci = make_oci(options(), later.watcher()).value().containerizer;
    launch.attempt = 1;
    ASSERT_TRUE(oci->launch(launch)) << gone;
    EXPECT_EQ(later.await_ending(id).value().exit_status, 5) << gone;
    EXPECT_EQ(sandbox_file(id, "trace"), "ran\nran\n") << gone;
    EXPECT_TRUE(oci->forget(id));
  }
}

TEST_F(RecoveryTest, AWithdrawnLaunchSpecIsNotRunByAShimThatComesLate) {
  const auto launch = traced_launch(id_of("late"));
  const auto folder = Directory::create(state_ + "/tasks/" + launch.task.id, 0711).value();
  ASSERT_TRUE(launcher_->prepare(folder, launch));
  EXPECT_EQ(oci_->recover(launch.task.id, 0).value(), Found::kNever);
  EXPECT_EQ(launcher_->start(folder, launch.task.id).value().readiness, Readiness::kTaken);
  EXPECT_EQ(sandbox_file(launch.task.id, "trace"), "");
}

TEST_F(RecoveryTest, AShimThatIsKilledLosesItsTaskAndLeavesNothing) {
  const auto launch = launch_of("orphan", {"/bin/sh", "-c", "sleep 1000 & sleep 1000"});
  ASSERT_TRUE(oci_->launch(launch));
  const auto first_process = observer_.await_started(launch.task.id).value().pid;
  ASSERT_EQ(::kill(shim_of(launch.task.id), SIGKILL), 0);
  const auto ending = observer_.await_ending(launch.task.id).value();
  EXPECT_TRUE(ending.lost);
  EXPECT_THAT(ending.message, HasSubstr("its shim died"));
  expect_nothing_left(launch.task.id, first_process);
  TaskObserver later;
  auto second = make_oci(options(), later.watcher()).value().containerizer;
  EXPECT_EQ(second->recover(launch.task.id, 0).value(), Found::kEnded);
  EXPECT_TRUE(later.await_ending(launch.task.id).value().lost) << "once lost, always lost";
}

TEST_F(RecoveryTest, AShimKilledWhileItStartsItsTaskLeavesNothing) {
  for (int round = 0; round < 12; ++round) {
    const auto launch = launch_of("start" + std::to_string(round), {"/bin/sleep", "1000"});
    std::thread killer([&] {
      while (shim_of(launch.task.id) == 0) ::usleep(500);
      ::usleep(static_cast<useconds_t>(round) * 3000);
      ::kill(shim_of(launch.task.id), SIGKILL);
    });
    const auto launched = oci_->launch(launch);
    killer.join();
    if (launched)
      EXPECT_TRUE(observer_.await_ending(launch.task.id).value().lost);
    else
      EXPECT_EQ(launched.error().message, "The shim died before it could start the task");
    expect_nothing_left(launch.task.id, 0);
  }
}

TEST_F(RecoveryTest, AShimKilledWhileNoDaemonRanIsNoticedLater) {
  const auto launch = launch_of("alone", {"/bin/sleep", "1000"});
  ASSERT_TRUE(oci_->launch(launch));
  const auto first_process = observer_.await_started(launch.task.id).value().pid;
  oci_.reset();
  const auto shim = shim_of(launch.task.id);
  ASSERT_EQ(::kill(shim, SIGKILL), 0);
  ASSERT_EQ(::waitpid(shim, nullptr, 0), shim);
  open();
  EXPECT_TRUE(is_alive(first_process)) << "nobody was there to end it";
  EXPECT_EQ(oci_->recover(launch.task.id, 0).value(), Found::kEnded);
  EXPECT_TRUE(observer_.await_ending(launch.task.id).value().lost);
  expect_nothing_left(launch.task.id, first_process);
}

TEST_F(RecoveryTest, ForgettingARunningTaskEndsItWithoutAWord) {
  const auto launch = launch_of("forgotten", {"/bin/sleep", "1000"});
  ASSERT_TRUE(oci_->launch(launch));
  const auto first_process = observer_.await_started(launch.task.id).value().pid;
  EXPECT_FALSE(oci_->clean(launch.task.id)) << "it still runs";
  ASSERT_TRUE(oci_->forget(launch.task.id));
  EXPECT_FALSE(fs::exists(state_ + "/tasks/" + launch.task.id));
  EXPECT_FALSE(observer_.await_ending(launch.task.id, std::chrono::seconds(0)));
  expect_nothing_left(launch.task.id, first_process);
  EXPECT_TRUE(oci_->forget(launch.task.id));
}

TEST_F(RecoveryTest, StoppingWhatDoesNotRunIsSaid) {
  EXPECT_EQ(oci_->stop("never-heard-of", false).error().kind, ErrorKind::kNotFound);
  EXPECT_EQ(oci_->launch(test_launch("../escape", {"/bin/true"})).error().kind, ErrorKind::kInvalid);
}

}  // namespace
}  // namespace drover::container
