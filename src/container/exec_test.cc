#include "container/exec.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <thread>

#include "container/oci_fixture.h"
#include "container/runtime_failure.h"
#include "container/task_folder.h"

namespace drover::container {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

class ExecTest : public OciFixture {
 protected:
  /// A task that runs until it is forgotten.
  std::string start(uid_t uid = 0, workload::Limits limits = {}) {
    auto launch = launch_of("exec", {"/bin/sh", "-c", "echo up; exec sleep 600"});
    launch.task.environment.edit()["FROM_TASK"] = "yes";
    launch.task.user.uid = uid;
    launch.task.user.gid = uid;
    launch.task.limits = limits;
    EXPECT_TRUE(oci_->launch(launch));
    EXPECT_TRUE(observer_.await_started(launch.task.id));
    return launch.task.id;
  }

  Result<CommandOutcome> run_in(const std::string& id, std::vector<std::string> command,
                                std::chrono::milliseconds timeout = 60s) {
    ExecRequest request;
    request.command = std::move(command);
    request.environment["EXTRA"] = "more";
    DROVER_TRY(const auto process, oci_->exec(id, request));
    return await_command(*process, timeout);
  }

  /// What comes out until the end, or until `until` has come.
  static std::string read_terminal(const ExecProcess& process, const std::string& until) {
    std::string text;
    while (text.find(until) == std::string::npos) {
      pollfd waited{process.output(), POLLIN, 0};
      if (::poll(&waited, 1, 60'000) != 1) break;
      std::array<char, 4096> buffer;
      const auto count = ::read(process.output(), buffer.data(), buffer.size());
      if (count <= 0) break;
      text.append(buffer.data(), static_cast<std::size_t>(count));
    }
    return text;
  }
};

TEST_F(ExecTest, RunsInTheContainerAsTheTasksUser) {
  const auto id = start(65534);
  const auto ran =
      run_in(id, {"/bin/sh", "-c", "id -u; echo $FROM_TASK $EXTRA; pwd; cat /proc/1/comm; exit 7"});
  ASSERT_TRUE(ran) << to_string(ran.error());
  EXPECT_EQ(ran->exit_status, 7);
  EXPECT_EQ(ran->output, "65534\nyes more\n" + oci_->sandbox(id) + "\ndrover-init\n");
  const auto complained = run_in(id, {"/bin/sh", "-c", "echo e >&2"});
  ASSERT_TRUE(complained) << to_string(complained.error());
  EXPECT_EQ(complained->output, "e\n");
}

TEST_F(ExecTest, TellsWhatCannotBeRun) {
  const auto id = start();
  const auto absent = run_in(id, {"/no/such/program"});
  ASSERT_TRUE(absent) << to_string(absent.error());
  EXPECT_EQ(absent->exit_status, 127);
  EXPECT_EQ(absent->output, "drover: There is no command '/no/such/program' in the container\n");
  EXPECT_FALSE(run_in(id, {}));
  EXPECT_FALSE(run_in(id_of("nobody"), {"/bin/true"}));
}

TEST_F(ExecTest, ARuntimeThatJoinsLateMakesNothingAnew) {
  const auto late = state_ + "/late-runtime", went = state_ + "/went";
  // As runc does: it makes its folder when that is not there.
  std::ofstream(late) << "#!/bin/sh\ncase \"$*\" in *' exec '*)\n  while ! [ -e " << went
                      << " ]; do sleep 0.01; done\n  mkdir -p \"$2\"\n  exit 1 ;;\nesac\nexec "
                      << runtimes().back().path << " \"$@\"\n";
  fs::permissions(late, fs::perms(0755));
  auto changed = options();
  changed.runtime = late;
  open(std::move(changed));
  const auto id = start();
  ExecRequest request;
  request.command = {"/bin/true"};
  auto joins = oci_->exec(id, request);
  ASSERT_TRUE(joins) << to_string(joins.error());
  ASSERT_TRUE(oci_->stop(id, true));
  ASSERT_TRUE(observer_.await_ending(id));
  std::thread cleans([&] { EXPECT_TRUE(oci_->clean(id)); });
  std::this_thread::sleep_for(200ms);
  std::ofstream{went};
  cleans.join();
  EXPECT_FALSE((*joins)->wait());
  joins->reset();
  for (const char* name : {kRuntimeState, kBundle, kJoinLock})
    EXPECT_FALSE(fs::exists(state_ + "/tasks/" + id + "/" + name)) << name;
  EXPECT_FALSE(oci_->exec(id, request)) << "it has ended";
  EXPECT_FALSE(fs::exists(state_ + "/tasks/" + id + "/" + kJoinLock));
  EXPECT_TRUE(oci_->forget(id));
}

TEST_F(ExecTest, TheRuntimeThatMadeTheContainerIsAskedThoughAnotherWasChosenSince) {
  const auto id = start();
  const auto other = state_ + "/other-runtime";
  std::ofstream(other) << "#!/bin/sh\ncase \"$*\" in *' exec '*) exit 1 ;; esac\nexec "
                       << runtimes().back().path << " \"$@\"\n";
  fs::permissions(other, fs::perms(0755));
  auto changed = options();
  changed.runtime = other;
  open(std::move(changed));
  ASSERT_TRUE(oci_->recover(id, 0));
  const auto said = run_in(id, {"/bin/sh", "-c", "echo inside"});
  ASSERT_TRUE(said) << to_string(said.error());
  EXPECT_EQ(said->output, "inside\n");
}

TEST_F(ExecTest, IsKilledForWantOfMemoryAsSoonAsItsTask) {
  const auto started = state_ + "/runtime", score = state_ + "/score";
  std::ofstream(started) << "#!/bin/sh\ncase \"$*\" in *' exec '*) cat /proc/self/oom_score_adj >" << score
                         << " ;; esac\nexec " << runtimes().back().path << " \"$@\"\n";
  fs::permissions(started, fs::perms(0755));
  auto changed = options();
  changed.runtime = started;
  open(std::move(changed));
  const auto id = start(65534, {.memory_bytes = 0});
  const auto ran = run_in(id, {"/bin/sh", "-c", "cat /proc/1/oom_score_adj /proc/self/oom_score_adj"});
  ASSERT_TRUE(ran) << to_string(ran.error());
  int task = 0, own = 0, runtime = 0;
  std::istringstream(ran->output) >> task >> own;
  std::ifstream(score) >> runtime;
  EXPECT_GT(task, 500);
  EXPECT_EQ(own, task);
  EXPECT_EQ(runtime, task) << "there are some that leave it to what they start";
}

TEST_F(ExecTest, IsKilledWithItsChildrenAtTheTimeout) {
  const auto id = start();
  const auto late = run_in(
      id, {"/bin/sh", "-c", "(sleep 4242 & setsid sleep 4242 & env -i setsid sleep 4242 &) ; sleep 4242"},
      1s);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().kind, ErrorKind::kTimeout);
  const auto left = run_in(id, {"/bin/sh", "-c",
                                "for f in /proc/[0-9]*/cmdline; do case \"$(tr '\\0' ' ' <$f)\" in"
                                " 'sleep 4242 ') echo $f ;; esac; done 2>/dev/null"});
  ASSERT_TRUE(left);
  EXPECT_EQ(left->output, "");
}

TEST_F(ExecTest, ATerminalIsOne) {
  const auto id = start();
  ExecRequest request;
  // A new size arrives as a signal would: some time after it was sent.
  request.command = {"/bin/sh", "-c",
                     "tty >/dev/null && stty size; read line; echo got $line;"
                     " until stty size | grep '44 99'; do sleep 0.01; done; exit 3"};
  request.tty = true;
  request.rows = 33;
  request.columns = 101;
  auto process = oci_->exec(id, request);
  ASSERT_TRUE(process) << to_string(process.error());
  EXPECT_NE(read_terminal(**process, "33 101").find("33 101"), std::string::npos);
  ASSERT_TRUE((*process)->resize(44, 99));
  const std::string line = "hello\n";
  ASSERT_EQ(::write((*process)->input(), line.data(), line.size()), 6);
  const auto rest = read_terminal(**process, "44 99");
  EXPECT_NE(rest.find("got hello"), std::string::npos) << rest;
  EXPECT_NE(rest.find("44 99"), std::string::npos) << rest;
  const auto status = (*process)->wait();
  ASSERT_TRUE(status) << to_string(status.error());
  EXPECT_EQ(*status, 3);
}

TEST_F(ExecTest, EndsWithWhoeverHoldsIt) {
  const auto id = start();
  ExecRequest request;
  request.command = {"/bin/sh", "-c", "sleep 4343; true"};
  auto process = oci_->exec(id, request);
  ASSERT_TRUE(process);
  // How many of it there are in the end; the brackets keep those who look from being found.
  const auto becomes = [&](const std::string& count) {
    std::string seen;
    for (int i = 0; i < 1500 && seen != count; ++i) {
      std::this_thread::sleep_for(20ms);
      const auto found = run_in(id, {"/bin/sh", "-c", "grep -slzx '434[3]' /proc/[0-9]*/cmdline | wc -l"});
      seen = found ? found->output : to_string(found.error());
    }
    return seen;
  };
  EXPECT_EQ(becomes("1\n"), "1\n");
  process->reset();
  EXPECT_EQ(becomes("0\n"), "0\n");
}

}  // namespace
}  // namespace drover::container
