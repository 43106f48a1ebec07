#include "container/cgroup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

namespace drover::container {
namespace {

using ::testing::ElementsAre;

TEST(Hierarchies, AreReadFromMountinfo) {
  const auto found = parse_hierarchies(
      "22 27 0:21 / /proc rw,relatime - proc proc rw\n"
      "30 27 0:26 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
      "31 27 0:27 / /sys/fs/cgroup/systemd rw shared:9 - cgroup cgroup rw,xattr,name=systemd\n"
      "32 27 0:28 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw,nsdelegate\n"
      "33 27 0:28 / /odd\n");
  ASSERT_EQ(found.size(), 3U);
  EXPECT_THAT(found[0].controllers, ElementsAre("cpu", "cpuacct"));
  EXPECT_THAT(found[1].controllers, ElementsAre("name=systemd"));
  EXPECT_TRUE(found[2].unified);
  EXPECT_EQ(cgroup_mode(found), "hybrid");
  EXPECT_EQ(cgroup_mode({found[0]}), "v1");
  EXPECT_EQ(cgroup_mode({found[2]}), "v2");
  EXPECT_EQ(cgroup_mode({}), "none");
}

TEST(UsableCpus, AreReadFromEitherVersion) {
  namespace fs = std::filesystem;
  std::string folder = fs::temp_directory_path() / "drover-cgroup-XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  const auto write = [&](const char* name, const char* text) {
    fs::create_directories(fs::path(folder) / fs::path(name).parent_path());
    std::ofstream(fs::path(folder) / name) << text;
  };
  write("cpuset/cpuset.effective_cpus", "0-2\n");
  write("v2/cpuset.cpus.effective", "1,3\n");
  fs::create_directories(folder + "/empty");
  const Hierarchy memory{folder + "/cpuset", {"memory"}, false};
  const Hierarchy v1{folder + "/cpuset", {"cpuset"}, false};
  const Hierarchy v2{folder + "/v2", {}, true};
  const Hierarchy unified_without{folder + "/empty", {}, true};
  using Cpus = std::vector<int>;
  EXPECT_EQ(usable_cpus({memory, v1}), (Cpus{0, 1, 2}));
  EXPECT_EQ(usable_cpus({v2}), (Cpus{1, 3}));
  EXPECT_EQ(usable_cpus({memory, unified_without}), Cpus{});
  fs::remove_all(folder);
}

TEST(LimitProcesses, OfAllContainersLeavesTheMachineAnEighth) {
  namespace fs = std::filesystem;
  std::string folder = fs::temp_directory_path() / "drover-cgroup-XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  const auto content = [](const std::string& file) {
    std::string line;
    std::getline(std::ifstream(file) >> std::ws, line);
    return line;
  };
  EXPECT_EQ(most_processes(32768), 28672U);
  // The kernel makes the files of a group; here nobody does.
  fs::create_directories(folder + "/drover");
  std::ofstream(folder + "/drover/pids.max") << "max\n";
  const Hierarchy memory{folder + "/none", {"memory"}, false};
  ASSERT_TRUE(limit_processes({memory, {folder, {"pids"}, false}}, "/drover", 28672));
  EXPECT_EQ(content(folder + "/drover/pids.max"), "28672");
  std::ofstream(folder + "/cgroup.subtree_control");
  ASSERT_TRUE(limit_processes({{folder, {}, true}}, "/drover", 100));
  EXPECT_EQ(content(folder + "/drover/pids.max").substr(0, 3), "100");
  EXPECT_EQ(content(folder + "/cgroup.subtree_control"), "+pids");
  EXPECT_FALSE(limit_processes({memory}, "/drover", 100)) << "nobody counts processes";
  EXPECT_FALSE(limit_processes({{folder, {"pids"}, false}}, "/lacking", 100)) << "no such file";
  fs::remove_all(folder);
}

TEST(LimitProcesses, MakesAGroupThatEverybodyMayLookAt) {
  namespace fs = std::filesystem;
  std::string folder = fs::temp_directory_path() / "drover-cgroup-XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  const auto limit = [&](const std::string& group) {
    (void)limit_processes({{folder, {"pids"}, false}}, group, 100);  // the kernel's file is not there
    return fs::status(folder + group).permissions();
  };
  const auto before = ::umask(077);
  constexpr auto kAllMayLook = fs::perms(0755);
  EXPECT_EQ(limit("/new"), kAllMayLook);
  fs::create_directory(folder + "/closed");
  EXPECT_EQ(limit("/closed"), kAllMayLook) << "as an older daemon has left it";
  ::umask(before);
  fs::remove_all(folder);
}

TEST(KernelProcessLimit, IsThatOfThisMachine) {
  const auto limit = kernel_process_limit();
  ASSERT_TRUE(limit) << limit.error().message;
  EXPECT_GT(*limit, 0U);
}

TEST(CpusToPin, AreThoseThatExistUnlessThatIsAllOrNone) {
  using Cpus = std::vector<int>;
  EXPECT_EQ(cpus_to_pin({0, 1, 5}, {0, 1, 2, 3}), (Cpus{0, 1}));
  EXPECT_EQ(cpus_to_pin({0, 1, 2, 3, 4, 5}, {0, 1, 2, 3}), Cpus{}) << "all of them: nothing to pin";
  EXPECT_EQ(cpus_to_pin({20, 21}, {0, 1}), Cpus{}) << "a simulated machine has more than this one";
  EXPECT_EQ(cpus_to_pin({}, {0, 1}), Cpus{});
  EXPECT_EQ(cpus_to_pin({0}, {}), Cpus{}) << "no cpuset controller";
}

TEST(Hierarchies, AServiceIsLeftOnlyWhereThereIsOne) {
  const Hierarchy systemd{"/sys/fs/cgroup/systemd", {"name=systemd"}, false};
  const Hierarchy unified{"/sys/fs/cgroup", {}, true};
  const Hierarchy memory{"/sys/fs/cgroup/memory", {"memory"}, false};
  constexpr auto kGroups = "5:memory:/x\n1:name=systemd:/system.slice/drover.service\n0::/\n";
  EXPECT_TRUE(in_service(systemd, kGroups));
  EXPECT_FALSE(in_service(unified, kGroups));
  EXPECT_FALSE(in_service(memory, kGroups));
  EXPECT_TRUE(in_service(unified, "0::/system.slice/drover.service\n"));
}

TEST(Hierarchies, TheOwnGroupIsADirectoryWhereVersion2IsAlone) {
  const Hierarchy unified{"/sys/fs/cgroup", {}, true};
  const Hierarchy memory{"/sys/fs/cgroup/memory", {"memory"}, false};
  EXPECT_EQ(own_unified_folder({unified}, "0::/system.slice/a\n"), "/sys/fs/cgroup/system.slice/a");
  EXPECT_EQ(own_unified_folder({memory, unified}, "4:memory:/b\n0::/a\n"), "");
  EXPECT_EQ(own_unified_folder({}, ""), "");
  EXPECT_EQ(Cgroup({unified}, "/drover/a").unified_folder(), "/sys/fs/cgroup/drover/a");
  EXPECT_FALSE(Cgroup({memory, unified}, "/drover/a").unified_folder());
}

}  // namespace
}  // namespace drover::container
