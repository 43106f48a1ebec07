#include "container/volume_source.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <thread>

#include "base/fd.h"

namespace drover::container {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::string_view kMounts =
    "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/vda rw\n"
    "23 22 0:21 / /proc rw shared:2 master:3 - proc proc rw\n"
    "24 22 0:22 / /dev rw - devtmpfs dev rw\n"
    "25 24 0:23 / /dev/shm rw - tmpfs tmpfs rw\n"
    "26 22 0:21 /sys/kernel/core_pattern /srv/a\\040b/core rw - proc proc rw\n"
    "27 22 0:24 / /srv/cg rw - cgroup2 cgroup2 rw\n"
    "half a line\n"
    "28 22 0:25 / /srv/data rw - fuse.sshfs host: rw\n";

TEST(VolumeSource, FindsMountsOfTheKernelInAFolder) {
  EXPECT_THAT(kernel_mounts_in(kMounts, "/srv"),
              ElementsAre(KernelMount{"proc", "/srv/a b/core"}, KernelMount{"cgroup2", "/srv/cg"}));
  EXPECT_THAT(kernel_mounts_in(kMounts, "/srv/a b/core"), ElementsAre(KernelMount{"proc", "/srv/a b/core"}));
  EXPECT_THAT(kernel_mounts_in(kMounts, "/srv/c"), IsEmpty());
  EXPECT_THAT(kernel_mounts_in(kMounts, "/dev/shm"), IsEmpty());
  EXPECT_EQ(kernel_mounts_in(kMounts, "/").size(), 4U);
}

TEST(VolumeSource, KnowsTheKernelsFileSystems) {
  for (const auto* type :
       {"proc",    "sysfs",     "cgroup",     "cgroup2",  "devtmpfs",   "devpts",  "securityfs",  "debugfs",
        "tracefs", "bpf",       "pstore",     "efivarfs", "configfs",   "fusectl", "binfmt_misc", "mqueue",
        "nsfs",    "selinuxfs", "rpc_pipefs", "nfsd",     "apparmorfs", "xenfs"})
    EXPECT_TRUE(is_kernel_file_system(type)) << type;
  for (const auto* type :
       {"ext4", "tmpfs", "overlay", "nfs4", "fuse.sshfs", "fuse.proc", "hugetlbfs", "9p", ""})
    EXPECT_FALSE(is_kernel_file_system(type)) << type;
}

/// Whatever is mounted is so in a mount namespace of a thread that ends.
class VolumeSourceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "only root may mount";
    char folder[] = "/tmp/drover-source-XXXXXX";
    ASSERT_NE(::mkdtemp(static_cast<char*>(folder)), nullptr);
    folder_ = fs::canonical(static_cast<char*>(folder));
  }
  void TearDown() override {
    if (!folder_.empty()) fs::remove_all(folder_);
  }

  static Status check(const std::string& path) {
    const UniqueFd fd(::open(path.c_str(), O_PATH | O_CLOEXEC));
    EXPECT_TRUE(fd.valid()) << path;
    return check_source({path, "/v", "", false}, fd.get());
  }
  static void apart(const std::function<void()>& work) {
    std::thread([&] {
      ASSERT_EQ(::unshare(CLONE_FS | CLONE_NEWNS), 0);
      ASSERT_EQ(::mount(nullptr, "/", nullptr, MS_PRIVATE | MS_REC, nullptr), 0);
      work();
    }).join();
  }

  std::string folder_;
};

TEST_F(VolumeSourceTest, FoldersAndFilesOfPeopleAreVolumes) {
  EXPECT_TRUE(check(folder_));
  apart([&] {
    ASSERT_EQ(::mount("tmpfs", folder_.c_str(), "tmpfs", 0, nullptr), 0);
    EXPECT_TRUE(check(folder_));
  });
}

TEST_F(VolumeSourceTest, NeitherProcNorSysNorWhatIsInThem) {
  for (const auto* path :
       {"/proc", "/proc/sys/kernel/core_pattern", "/proc/self/fd", "/sys", "/sys/kernel"}) {
    const auto checked = check(path);
    ASSERT_FALSE(checked) << path;
    EXPECT_EQ(checked.error().kind, ErrorKind::kPermissionDenied);
    EXPECT_THAT(checked.error().message, HasSubstr("it lies in the kernel's file system"));
  }
}

TEST_F(VolumeSourceTest, NotByAnotherNameEither) {
  fs::create_symlink("/proc/sys", folder_ + "/link");
  EXPECT_FALSE(check(folder_ + "/link"));
  fs::create_directories(folder_ + "/a b/proc");
  const auto proc = folder_ + "/a b/proc";
  apart([&] {
    ASSERT_EQ(::mount("/proc/sys", proc.c_str(), nullptr, MS_BIND, nullptr), 0);
    EXPECT_FALSE(check(proc));
    const auto above = check(folder_);
    ASSERT_FALSE(above);
    EXPECT_THAT(above.error().message,
                HasSubstr("the kernel's file system proc is mounted at '" + proc + "'"));
    // Covered is not gone: the whole tree of mounts would go along.
    ASSERT_EQ(::mount("tmpfs", proc.c_str(), "tmpfs", 0, nullptr), 0);
    EXPECT_FALSE(check(folder_));
  });
  EXPECT_TRUE(check(folder_));
}

TEST_F(VolumeSourceTest, AFolderWhoseNameOnlyBeginsAlikeIsNoneOfIt) {
  fs::create_directories(folder_ + "/data");
  fs::create_directories(folder_ + "/data-proc");
  apart([&] {
    ASSERT_EQ(::mount("proc", (folder_ + "/data-proc").c_str(), "proc", 0, nullptr), 0);
    EXPECT_TRUE(check(folder_ + "/data"));
  });
}

}  // namespace
}  // namespace drover::container
