#include "gpu/strangers.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "base/fd.h"

namespace drover::gpu {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// A device with a driver that nobody else has open: it plays the GPU.
constexpr const char* kDevice = "/dev/random";
constexpr const char* kUuid = "GPU-1";

dev_t number_of_device(const char* path) {
  struct stat info{};
  EXPECT_EQ(::stat(path, &info), 0) << path;
  return info.st_rdev;
}

/// `task`: whose all processes are.
std::set<std::uint32_t> openers_of(const char* path, const std::string& task = "") {
  const auto device = number_of_device(path);
  return find_openers("/proc", {device}, [&](std::string_view) { return task; })[device];
}

std::uint32_t own_pid() {
  return static_cast<std::uint32_t>(::getpid());
}

/// A process that has the device open, of this name, until it is destroyed.
class Opener {
 public:
  explicit Opener(const char* name, uid_t user = 0, int flags = O_RDWR) {
    int ready[2] = {-1, -1};
    EXPECT_EQ(::pipe2(static_cast<int*>(ready), O_CLOEXEC), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::prctl(PR_SET_NAME, name);
      const bool open =
          ::open(kDevice, flags | O_CLOEXEC) >= 0 && (user == 0 || ::setresuid(user, user, user) == 0);
      if (open) (void)!::write(ready[1], "x", 1);
      for (;;) ::pause();
    }
    ::close(ready[1]);
    char word = 0;
    EXPECT_EQ(::read(ready[0], &word, 1), 1);
    ::close(ready[0]);
  }
  ~Opener() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Opener(const Opener&) = delete;
  Opener& operator=(const Opener&) = delete;

  std::uint32_t pid() const { return static_cast<std::uint32_t>(pid_); }

 private:
  pid_t pid_ = -1;
};

/// What is said of the GPU when its processes belong to this task.
std::string said(const std::string& task, const std::set<std::string>& owners,
                 const StrangerPolicy& policy = {}, const std::set<std::uint32_t>& computing = {},
                 bool has_node = true) {
  const GuardedGpu gpu{kUuid, has_node ? number_of_device(kDevice) : 0, computing, owners};
  auto found = find_strangers({gpu}, policy, [&](std::string_view) { return task; });
  return found[kUuid];
}

TEST(Openers, AreThoseWithAnOpenDescriptor) {
  EXPECT_THAT(openers_of(kDevice), Not(Contains(own_pid())));
  UniqueFd fd(::open(kDevice, O_RDONLY | O_CLOEXEC));
  ASSERT_TRUE(fd.valid());
  EXPECT_THAT(openers_of(kDevice), Contains(own_pid()));
  fd.reset();
  EXPECT_THAT(openers_of(kDevice), Not(Contains(own_pid())));
}

TEST(Openers, AreNotThoseWhoOnlyNameIt) {
  const UniqueFd fd(::open(kDevice, O_PATH | O_CLOEXEC));
  ASSERT_TRUE(fd.valid());
  EXPECT_THAT(openers_of(kDevice), Not(Contains(own_pid())));
}

TEST(Openers, AreThoseWhoseTaskHasItMapped) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root sees what others have mapped";
  UniqueFd fd(::open("/dev/zero", O_RDONLY | O_CLOEXEC));
  void* const mapping = ::mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  ASSERT_NE(mapping, MAP_FAILED);
  fd.reset();
  EXPECT_THAT(openers_of("/dev/zero", "t"), Contains(own_pid()));
  EXPECT_THAT(openers_of("/dev/zero"), Not(Contains(own_pid()))) << "no task's: it could open it again";
  ::munmap(mapping, 4096);
  EXPECT_THAT(openers_of("/dev/zero", "t"), Not(Contains(own_pid())));
}

TEST(Openers, AreThoseWhoseThreadHidesItFromTheOthers) {
  std::set<std::uint32_t> seen;
  std::thread([&] {
    ASSERT_EQ(::unshare(CLONE_FILES), 0);
    const UniqueFd fd(::open(kDevice, O_RDONLY | O_CLOEXEC));
    ASSERT_TRUE(fd.valid());
    seen = openers_of(kDevice);
  }).join();
  EXPECT_THAT(seen, Contains(own_pid()));
}

TEST(Strangers, AreToldWithTheirProcess) {
  const Opener opener("job");
  EXPECT_EQ(said("", {}), fmt::format("process {} (job) has it open, and is no task's", opener.pid()));
  EXPECT_EQ(
      said("t1", {"t2"}),
      fmt::format("process {} (job) has it open, and is of a task that does not have it", opener.pid()));
  EXPECT_EQ(said("t1", {"t1", "t2"}), "") << "it is its own";
}

TEST(Strangers, AreThoseThatTheDriverTellsOf) {
  const Opener opener("job", 0, O_PATH);
  EXPECT_EQ(said("", {}), "");
  EXPECT_THAT(said("", {}, {}, {opener.pid()}, false), HasSubstr("(job)"));
  EXPECT_EQ(said("t1", {"t1"}, {}, {opener.pid()}, false), "");
  EXPECT_EQ(said("", {}, {}, {own_pid(), 4'194'305}), "") << "neither this process nor one that is gone";
}

TEST(Strangers, AreNotTheSystemsOwnPrograms) {
  {
    const Opener opener("nvidia-persistenced");
    EXPECT_EQ(said("", {}), "");
    EXPECT_THAT(said("t1", {}), HasSubstr("of a task that does not have it")) << "whatever it calls itself";
  }
  if (::geteuid() != 0) GTEST_SKIP() << "only root becomes somebody else";
  {
    const Opener opener("nvidia-smi", 117);
    EXPECT_EQ(said("", {}), "");
  }
  const Opener opener("nvidia-smi", 60601);
  EXPECT_THAT(said("", {}), HasSubstr("no task's")) << "people call their programs what they like";
  EXPECT_EQ(said("", {}, {{"nvidia-smi"}}), "") << "unless an administrator excuses it";
  EXPECT_EQ(said("", {}, {.excused = {}, .servers = {static_cast<pid_t>(opener.pid())}}), "")
      << "or Drover started it for tasks";
}

TEST(Strangers, CannotPutAnythingIntoTheSentence) {
  const Opener opener("a\n\033[31mb");
  EXPECT_THAT(said("", {}), HasSubstr("(a??[31mb)"));
}

TEST(Strangers, OfOneGpuAreNotThoseOfAnother) {
  const Opener opener("job");
  const std::vector<GuardedGpu> gpus{{"GPU-1", number_of_device("/dev/null") + 1000, {}, {}},
                                     {"GPU-2", number_of_device(kDevice), {}, {}}};
  const auto found = find_strangers(gpus, {}, [](std::string_view) { return ""; });
  EXPECT_FALSE(found.contains("GPU-1"));
  EXPECT_TRUE(found.contains("GPU-2"));
}

}  // namespace
}  // namespace drover::gpu
