// What is arranged for those who share GPUs, with the simulated programs, real processes and real mounts.

#include "share/host_shares.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <random>

#include "base/files.h"
#include "base/process.h"

namespace drover::share {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

const std::string kGpu = "GPU-11111111-2222-3333-4444-555555555555";
const std::string kOther = "GPU-99999999-2222-3333-4444-555555555555";
constexpr const char* kOwner = "claim-0a";

Arrangement by_mps(std::optional<int> threads = std::nullopt) {
  Arrangement wanted;
  wanted.mps = MpsLimits{{kGpu}, threads, {{kGpu, 1024}}};
  return wanted;
}

Arrangement in_turns(Interval interval) {
  return {.intervals = {{kGpu, interval}}, .mps = std::nullopt};
}

class HostSharesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ::signal(SIGPIPE, SIG_IGN);  // as programs do that write to others
    char name[] = "/tmp/drover-share-XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    folder = name + std::string("/as-long-a-path-as-the-kubelet-s-folders-of-plugins-with-long-names-have");
    fs::create_directories(folder);
    programs.smi = std::string(DROVER_SIM_PROGRAMS) + "/nvidia-smi";
    programs.mps_control = std::string(DROVER_SIM_PROGRAMS) + "/nvidia-cuda-mps-control";
    programs.environment = minimal_environment();
    programs.environment["DROVER_SIM_SETTINGS"] = folder + "/settings";
    restart();
  }
  void TearDown() override {
    shares.reset();
    MpsDaemons daemons(folder + "/state/mps");
    for (const auto& owner : daemons.owners().value_or(std::vector<std::string>()))
      EXPECT_TRUE(daemons.end(owner, nullptr));
    fs::remove_all(fs::path(folder).parent_path());
  }
  /// As after a kill: nothing but what is on disk, and what runs.
  void restart() {
    shares = std::make_unique<HostShares>(
        HostShares::Options{folder + "/state", [this]() -> Result<Programs> { return programs; },
                            [this](const std::string& sentence) { warnings.push_back(sentence); },
                            [this](const std::string& owner) { restarted.push_back(owner); }});
  }
  std::string refusal_of(const std::string& owner, const Arrangement& wanted) {
    const auto made = shares->make(owner, wanted);
    return made ? "" : to_string(made.error());
  }
  std::string setting(const std::string& name, const std::string& gpu = kGpu) const {
    auto text = read_file(folder + "/settings/" + gpu + "." + name).value_or("");
    while (!text.empty() && text.back() == '\n') text.pop_back();
    return text;
  }
  std::string told(const std::string& owner = kOwner) const {
    return read_file(folder + "/state/mps/" + owner + "/log/control.log").value_or("");
  }
  std::string record() const { return read_file(folder + "/state/sharing.json").value_or(""); }
  /// Processes of a daemon: it, and its server.
  std::vector<pid_t> processes(const std::string& owner = kOwner) const {
    std::vector<pid_t> found;
    const auto mark = "DROVER_MPS=" + folder + "/state/mps/" + owner;
    for (const auto& entry : fs::directory_iterator("/proc"))
      if (const auto pid = std::atoi(entry.path().filename().c_str()); pid > 0)
        if (read_file(entry.path().string() + "/environ").value_or("").find(mark) != std::string::npos)
          found.push_back(pid);
    return found;
  }
  void expect_nothing_left() {
    EXPECT_THAT(processes(), IsEmpty());
    EXPECT_FALSE(fs::exists(folder + "/state/mps/" + kOwner));
    EXPECT_THAT(read_file("/proc/self/mounts").value_or(""), Not(HasSubstr(folder)));
    EXPECT_THAT(record(), Not(HasSubstr("GPU-")));
  }
  /// Whether this process may mount: without that there is no MPS.
  static bool may_mount() { return ::geteuid() == 0 && ::unshare(CLONE_NEWNS) == 0; }

  std::string folder;
  Programs programs;
  std::vector<std::string> warnings, restarted;
  std::unique_ptr<HostShares> shares;
};

class MpsTest : public HostSharesTest {
 protected:
  void SetUp() override {
    if (!may_mount()) GTEST_SKIP() << "file systems are mounted by root only";
    HostSharesTest::SetUp();
  }
  void TearDown() override {
    if (!folder.empty()) HostSharesTest::TearDown();
  }
};

TEST_F(HostSharesTest, AnIntervalIsSetUntilTheLastOneHasLeft) {
  ASSERT_EQ(refusal_of("claim-a", in_turns(Interval::kLong)), "");
  ASSERT_EQ(refusal_of("claim-b", in_turns(Interval::kLong)), "");
  EXPECT_EQ(setting("timeslice"), "3");
  EXPECT_THAT(refusal_of("claim-c", in_turns(Interval::kShort)), HasSubstr("the interval Long"));
  EXPECT_THAT(refusal_of("claim-c", in_turns(Interval::kDefault)), HasSubstr("the interval Long"));
  EXPECT_THAT(refusal_of("claim-c", by_mps()), HasSubstr("in turns of time"));
  EXPECT_TRUE(shares->undo("claim-a"));
  EXPECT_EQ(setting("timeslice"), "3");
  EXPECT_TRUE(shares->undo("claim-b"));
  EXPECT_EQ(setting("timeslice"), "0");
  EXPECT_THAT(record(), Not(HasSubstr("GPU-")));
  EXPECT_TRUE(shares->undo("claim-b"));
}

TEST_F(HostSharesTest, TheDefaultIntervalNeedsNoProgram) {
  programs.smi = "/nowhere/nvidia-smi";
  ASSERT_EQ(refusal_of("claim-a", in_turns(Interval::kDefault)), "");
  EXPECT_THAT(refusal_of("claim-b", in_turns(Interval::kShort)), HasSubstr("the interval Default"));
  EXPECT_TRUE(shares->undo("claim-a"));
  EXPECT_NE(refusal_of("claim-b", in_turns(Interval::kShort)), "");
}

TEST_F(HostSharesTest, WhatCannotBePutBackIsTriedAgain) {
  ASSERT_EQ(refusal_of("claim-a", in_turns(Interval::kShort)), "");
  const auto smi = std::exchange(programs.smi, "/nowhere/nvidia-smi");
  EXPECT_TRUE(shares->undo("claim-a")) << "no pod hangs on a GPU that does not answer";
  EXPECT_THAT(warnings, SizeIs(1));
  EXPECT_FALSE(shares->keep());
  EXPECT_EQ(setting("timeslice"), "1");
  programs.smi = smi;
  restart();
  EXPECT_TRUE(shares->keep());
  EXPECT_EQ(setting("timeslice"), "0");
}

TEST_F(HostSharesTest, AProgramThatFailsIsQuotedAndNothingIsLeft) {
  auto wanted = in_turns(Interval::kShort);
  wanted.intervals = {{"no-gpu", Interval::kShort}};
  EXPECT_THAT(refusal_of("claim-a", wanted), HasSubstr("No devices were found"));
  EXPECT_THAT(record(), Not(HasSubstr("claim-a")));
}

TEST_F(HostSharesTest, OwnersThatAreGoneLeaveNothing) {
  ASSERT_EQ(refusal_of("claim-a", in_turns(Interval::kMedium)), "");
  restart();
  EXPECT_TRUE(shares->keep());
  EXPECT_EQ(setting("timeslice"), "2");
  EXPECT_TRUE(shares->keep_only("other-", [](const auto&) { return false; }));
  EXPECT_EQ(setting("timeslice"), "2");
  EXPECT_TRUE(shares->keep_only("claim-", [](const auto&) { return false; }));
  EXPECT_EQ(setting("timeslice"), "0");
}

TEST_F(HostSharesTest, ARecordThatCannotBeReadIsSetAside) {
  fs::create_directories(folder + "/state");
  ASSERT_TRUE(write_file(folder + "/state/sharing.json", "{\"format\": 5"));
  EXPECT_EQ(refusal_of("claim-a", in_turns(Interval::kShort)), "");
  EXPECT_THAT(warnings, SizeIs(1));
  EXPECT_TRUE(fs::exists(folder + "/state/sharing.json.unreadable"));
  EXPECT_THAT(refusal_of("../evil", in_turns(Interval::kShort)), HasSubstr("no name"));
}

TEST_F(MpsTest, ADaemonRunsAsLongAsItsOwnerWantsIt) {
  ASSERT_EQ(refusal_of(kOwner, by_mps(50)), "");
  EXPECT_EQ(setting("compute-mode"), "3");
  EXPECT_THAT(told(), HasSubstr("started for " + kGpu));
  EXPECT_THAT(processes(), SizeIs(2));
  const auto pipe = shares->places(kOwner).pipe;
  EXPECT_TRUE(fs::exists(pipe + "/control"));
  struct stat status{};
  ASSERT_EQ(::stat(shares->places(kOwner).shm.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777U, 01777U);
  EXPECT_THAT(refusal_of("claim-b", by_mps()), HasSubstr("is shared by MPS for somebody else"));
  EXPECT_THAT(refusal_of("claim-b", in_turns(Interval::kShort)), HasSubstr("is shared by MPS"));
  ASSERT_EQ(refusal_of(kOwner, by_mps(50)), "") << "the same again";
  EXPECT_THAT(processes(), SizeIs(2));
  EXPECT_TRUE(shares->undo(kOwner));
  EXPECT_EQ(setting("compute-mode"), "0");
  expect_nothing_left();
}

TEST_F(MpsTest, ItIsToldTheLimits) {
  ASSERT_EQ(refusal_of(kOwner, by_mps(25)), "");
  for (int i = 0; i < 100 && told().find("get_server_list") == std::string::npos; ++i) ::usleep(20'000);
  EXPECT_THAT(told(), HasSubstr("set_default_active_thread_percentage 25\n"
                                "set_default_device_pinned_mem_limit " +
                                kGpu + " 1024M\n"));
}

TEST_F(MpsTest, AModeThatSomebodyHasSetStaysAndThereIsNoMps) {
  auto wanted = by_mps();
  wanted.mps->gpus = {kOther, kGpu};
  for (const auto mode : {ComputeMode::kProhibited, ComputeMode::kExclusiveProcess}) {
    ASSERT_TRUE(set_compute_mode(programs, kGpu, mode));
    EXPECT_THAT(refusal_of(kOwner, wanted),
                AllOf(HasSubstr("has the compute mode"), HasSubstr(kGpu + " -c 0")));
    EXPECT_EQ(setting("compute-mode"), std::to_string(static_cast<int>(mode)));
    EXPECT_EQ(setting("compute-mode", kOther), "0");
    expect_nothing_left();
  }
}

TEST_F(MpsTest, OursIsNotTakenForOneThatSomebodyHasSet) {
  ASSERT_EQ(refusal_of(kOwner, by_mps()), "");
  restart();
  EXPECT_TRUE(shares->keep());
  EXPECT_TRUE(shares->undo(kOwner));
  EXPECT_EQ(setting("compute-mode"), "0");
}

TEST_F(MpsTest, WhoeverComesAfterOneThatWasKilledGoesOn) {
  ASSERT_EQ(refusal_of(kOwner, by_mps()), "");
  const auto before = processes();
  restart();
  EXPECT_TRUE(shares->keep());
  EXPECT_EQ(processes(), before);
  restart();
  EXPECT_TRUE(shares->keep_only("claim-", [](const auto&) { return false; }));
  expect_nothing_left();
  EXPECT_EQ(setting("compute-mode"), "0");
}

TEST_F(MpsTest, ADaemonThatEndsIsStartedAgainAndItsServerEnded) {
  ASSERT_EQ(refusal_of(kOwner, by_mps()), "");
  const UniqueFd pipe(::open(shares->places(kOwner).pipe.c_str(), O_PATH | O_CLOEXEC));
  const auto mine = shares->places(kOwner).shm + "/mine";
  ASSERT_TRUE(write_file(mine, "x"));
  const auto before = processes();
  for (const auto pid : before)
    if (::getsid(pid) == pid) ::kill(pid, SIGKILL);
  for (int i = 0; i < 100 && processes().size() > 1; ++i) ::usleep(20'000);
  EXPECT_THAT(processes(), SizeIs(1)) << "its server goes on";
  EXPECT_TRUE(shares->keep());
  EXPECT_THAT(warnings, SizeIs(1));
  const auto now = processes();
  EXPECT_THAT(now, SizeIs(2));
  for (const auto pid : now) EXPECT_THAT(before, Not(::testing::Contains(pid)));
  EXPECT_EQ(::faccessat(pipe.get(), "control", F_OK, 0), 0) << "containers that are there reach it";
  EXPECT_TRUE(fs::exists(mine));
}

TEST_F(MpsTest, WhatNobodyHasRecordedIsEnded) {
  MpsDaemons daemons(folder + "/state/mps");
  ASSERT_TRUE(daemons.start(kOwner, *by_mps().mps, programs));
  EXPECT_THAT(processes(), SizeIs(2));
  EXPECT_TRUE(shares->keep());
  expect_nothing_left();
}

TEST_F(HostSharesTest, WithoutTheProgramOfMpsThereIsNone) {
  programs.mps_control.clear();
  EXPECT_THAT(refusal_of(kOwner, by_mps()), HasSubstr("no 'nvidia-cuda-mps-control'"));
  EXPECT_EQ(setting("compute-mode"), "");
}

TEST_F(MpsTest, ADaemonThatDoesNotStartLeavesNothing) {
  const auto script = folder + "/mps";
  ASSERT_TRUE(write_file(script, "#!/bin/sh\necho out of luck\nexit 1\n", 0755));
  programs.mps_control = script;
  EXPECT_THAT(refusal_of(kOwner, by_mps()), HasSubstr("ended at once: out of luck"));
  expect_nothing_left();
  EXPECT_EQ(setting("compute-mode"), "0");
}

TEST_F(MpsTest, AServerThatWillNotGoIsKilledAndWhatItLeftIsNotFollowed) {
  ASSERT_EQ(refusal_of(kOwner, by_mps()), "");
  const auto victim = folder + "/victim";
  ASSERT_TRUE(write_file(victim, "mine"));
  fs::create_symlink(folder, shares->places(kOwner).shm + "/link");
  fs::create_symlink(victim, shares->places(kOwner).shm + "/cuda.shm.0");
  for (const auto pid : processes())
    ::kill(pid, SIGSTOP);  // it does not read, and ends by nothing but SIGKILL
  EXPECT_TRUE(shares->undo(kOwner));
  expect_nothing_left();
  EXPECT_EQ(read_file(victim).value_or(""), "mine");
}

/// One who says that he is the daemon, and has what its clients' containers have, in its place.
pid_t impostor(const std::string& folder, const MpsPlaces& places) {
  const auto pid = ::fork();
  if (pid != 0) return pid;
  ::setenv("DROVER_MPS", (folder + "/state/mps/" + kOwner).c_str(), 1);
  ::setenv("CUDA_MPS_LOG_DIRECTORY", "/mnt/log", 1);
  ::setsid();
  const auto pipe = places.pipe.c_str();
  if (::unshare(CLONE_NEWNS) != 0 || ::mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) != 0 ||
      ::mount(pipe, "/mnt", nullptr, MS_BIND, nullptr) != 0 ||
      ::mount(places.shm.c_str(), "/dev/shm", nullptr, MS_BIND, nullptr) != 0)
    ::_exit(1);
  ::execlp("sleep", "sleep", "1000", nullptr);
  ::_exit(1);
}

TEST_F(MpsTest, NobodyIsTakenForADaemonThatHeIsNot) {
  ASSERT_EQ(refusal_of(kOwner, by_mps()), "");
  const auto daemon = processes();
  const auto evil = impostor(folder, shares->places(kOwner));
  for (int i = 0; i < 100 && processes().size() < 3; ++i) ::usleep(20'000);
  ASSERT_THAT(processes(), SizeIs(3)) << "it looks like one";
  for (const auto pid : daemon) ::kill(pid, SIGKILL);
  restart();
  EXPECT_TRUE(shares->keep());
  EXPECT_THAT(processes(), SizeIs(3)) << "there is a daemon again";
  EXPECT_TRUE(shares->undo(kOwner));
  EXPECT_THAT(processes(), ::testing::ElementsAre(evil)) << "who is no daemon goes on, and holds nothing up";
  ::kill(evil, SIGKILL);
  EXPECT_EQ(::waitpid(evil, nullptr, 0), evil);
  expect_nothing_left();
}

/// What an agent does all day, until somebody kills it.
[[noreturn]] void work(HostShares& shares) {
  for (int round = 0;; ++round) {
    (void)shares.make(kOwner, by_mps(1 + round % 100));
    (void)shares.make("claim-b", {.intervals = {{kOther, Interval::kLong}}, .mps = std::nullopt});
    if (round % 2 == 0) (void)shares.undo(kOwner);
    if (round % 3 == 0) (void)shares.undo("claim-b");
    (void)shares.keep();
  }
}

TEST_F(MpsTest, NothingIsLeftWhoeverIsKilledWhenever) {
  const char* kills = std::getenv("DROVER_TEST_KILLS");
  std::mt19937 chance(11);
  for (int round = 0; round < (kills != nullptr ? std::atoi(kills) : 20); ++round) {
    const auto agent = ::fork();
    ASSERT_GE(agent, 0);
    if (agent == 0) work(*shares);
    ::usleep(static_cast<useconds_t>(chance() % 300'000));
    if (chance() % 3 == 0)
      for (const auto pid : processes())
        if (chance() % 2 == 0) ::kill(pid, SIGKILL);
    ::kill(agent, SIGKILL);
    ASSERT_EQ(::waitpid(agent, nullptr, 0), agent);
    restart();
    ASSERT_TRUE(shares->keep()) << round;
    ASSERT_TRUE(shares->keep_only("claim-", [](const auto&) { return false; }));
    ASSERT_TRUE(shares->keep());
    expect_nothing_left();
    EXPECT_THAT(setting("compute-mode"), ::testing::AnyOf("", "0")) << round;
    EXPECT_THAT(setting("timeslice", kOther), ::testing::AnyOf("", "0")) << round;
    ASSERT_FALSE(HasFailure()) << round;
  }
}

TEST(MpsCommands, NameEachLimit) {
  EXPECT_EQ(mps_commands({{kGpu}, std::nullopt, {}}), "get_server_list\n");
  EXPECT_EQ(mps_commands({{kGpu, kOther}, 50, {{kGpu, 1}, {kOther, 2048}}}),
            "set_default_active_thread_percentage 50\nset_default_device_pinned_mem_limit " + kGpu +
                " 1M\nset_default_device_pinned_mem_limit " + kOther + " 2048M\nget_server_list\n");
}

TEST(Ledger, IsReadAsItIsWritten) {
  Ledger ledger;
  ledger.owners["claim-a"] = by_mps(50);
  ledger.owners["claim-b"] = {.intervals = {{kOther, Interval::kMedium}}, .mps = std::nullopt};
  ledger.gpus[kGpu].exclusive = true;
  ledger.gpus[kOther].interval = true;
  const auto read = read_ledger(write_ledger(ledger));
  ASSERT_TRUE(read) << to_string(read.error());
  EXPECT_EQ(*read, ledger);
}

TEST(Ledger, RefusesWhatItHasNotWritten) {
  for (const auto* text :
       {"", "{}", R"({"format":"drover-sharing","version":2})",
        R"({"format":"drover-sharing","version":1,"owners":{"../x":{}}})",
        R"({"format":"drover-sharing","version":1,"owners":{"a":{"intervals":{"GPU-0":4}}}})",
        R"({"format":"drover-sharing","version":1,"owners":{"a":{"mps":{"gpus":[]}}}})",
        R"({"format":"drover-sharing","version":1,"gpus":{"GPU-0":{"exclusive":9}}})"})
    EXPECT_FALSE(read_ledger(text)) << text;
}

TEST_F(MpsTest, WhoseGpusAreGivenOnKeepsThemUntilNothingIsLeft) {
  ASSERT_EQ(refusal_of("group-1-a.b_c", by_mps()), "");
  const auto smi = std::exchange(programs.smi, "/nowhere/nvidia-smi");
  EXPECT_FALSE(shares->end("group-1-a.b_c"));
  EXPECT_THAT(refusal_of("claim-b", by_mps()), HasSubstr("for somebody else"));
  EXPECT_FALSE(shares->keep());
  EXPECT_THAT(processes("group-1-a.b_c"), IsEmpty()) << "it is not started again";
  restart();
  EXPECT_FALSE(shares->end("group-1-a.b_c"));
  programs.smi = smi;
  EXPECT_TRUE(shares->end("group-1-a.b_c"));
  EXPECT_EQ(setting("compute-mode"), "0");
  EXPECT_THAT(record(), Not(HasSubstr("GPU-")));
  EXPECT_TRUE(shares->end("group-1-a.b_c"));
  expect_nothing_left();
}

/// nvidia-smi that makes a GPU exclusive to one process, says that it failed, and then fails.
TEST_F(MpsTest, WhatFailedAndCannotBeUndoneIsItsOwnersUntilItIs) {
  const auto smi = programs.smi, script = folder + "/smi", broken = folder + "/broken";
  ASSERT_TRUE(write_file(script,
                         "#!/bin/sh\ncase $* in *' -c 0') [ ! -e " + broken + " ] || exit 9; esac\n" + smi +
                             " \"$@\" || exit 1\ncase $* in *' -c 3') [ ! -e " + broken +
                             " ] || exit 9; esac\n",
                         0755));
  ASSERT_TRUE(write_file(broken, ""));
  programs.smi = script;
  EXPECT_NE(refusal_of(kOwner, by_mps()), "");
  EXPECT_EQ(setting("compute-mode"), "3");
  EXPECT_THAT(warnings, SizeIs(1));
  EXPECT_FALSE(shares->end(kOwner));
  EXPECT_THAT(refusal_of("claim-b", by_mps()), HasSubstr("for somebody else"));
  EXPECT_FALSE(shares->keep());
  fs::remove(broken);
  EXPECT_TRUE(shares->keep());
  EXPECT_EQ(setting("compute-mode"), "0");
  expect_nothing_left();
  EXPECT_TRUE(shares->end(kOwner));
  EXPECT_EQ(refusal_of("claim-b", by_mps()), "");
  EXPECT_TRUE(shares->end("claim-b"));
}

TEST_F(MpsTest, OneThatEndedWhileNobodyWasThereIsToldOfOnce) {
  ASSERT_EQ(refusal_of(kOwner, by_mps()), "");
  restart();
  EXPECT_TRUE(shares->keep());
  EXPECT_THAT(warnings, IsEmpty()) << "it runs";
  for (const auto pid : processes()) ::kill(pid, SIGKILL);
  for (int i = 0; i < 100 && !processes().empty(); ++i) ::usleep(20'000);
  restart();
  const auto smi = std::exchange(programs.smi, "/nowhere/nvidia-smi");
  EXPECT_FALSE(shares->keep());
  EXPECT_THAT(restarted, IsEmpty());
  programs.smi = smi;
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(shares->keep());
  EXPECT_THAT(warnings, ::testing::ElementsAre(HasSubstr("had ended: it is started again")));
  EXPECT_THAT(restarted, ::testing::ElementsAre(kOwner));
  EXPECT_TRUE(shares->end(kOwner));
}

TEST_F(MpsTest, WhoHasItKeepsItWhenItCannotBeMadeAgain) {
  ASSERT_EQ(refusal_of(kOwner, by_mps()), "");
  const auto before = processes();
  restart();
  const auto smi = std::exchange(programs.smi, "/nowhere/nvidia-smi");
  EXPECT_NE(refusal_of(kOwner, by_mps()), "");
  EXPECT_EQ(processes(), before);
  EXPECT_THAT(shares->processes(), SizeIs(2));
  programs.smi = smi;
  EXPECT_EQ(refusal_of(kOwner, by_mps()), "");
  EXPECT_TRUE(shares->end(kOwner));
  expect_nothing_left();
}

}  // namespace
}  // namespace drover::share
