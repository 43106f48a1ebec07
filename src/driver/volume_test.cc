#include "driver/volume.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <random>
#include <thread>

#include "base/fake_tree.h"
#include "base/files.h"
#include "driver/fake_elf.h"

namespace drover::driver {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

std::vector<std::string> names_in(const std::string& folder) {
  return Directory::open(folder).value().list().value();
}

/// Mounts a small tmpfs for one test.
class SmallDisk {
 public:
  SmallDisk(const std::string& path, unsigned long flags, const char* options) : path_(path) {
    fs::create_directory(path_);
    mounted_ = ::mount("tmpfs", path_.c_str(), "tmpfs", flags, options) == 0;
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;
  ~SmallDisk() {
    if (mounted_) ::umount2(path_.c_str(), MNT_DETACH);
  }
  bool mounted() const { return mounted_; }

 private:
  std::string path_;
  bool mounted_;
};

class VolumeTest : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "building the driver volume needs root";
    host_.file("usr/lib64/libcuda.so.390.30", fake_elf(library_of(kX86_64)) + std::string(3 << 20, 'c'));
    host_.link("usr/lib64/libcuda.so.1", "libcuda.so.390.30");
    host_.file("usr/lib/i386-linux-gnu/libcuda.so.390.30", fake_elf(library_of(kI386, ElfClass::k32)));
    host_.file("usr/bin/nvidia-smi", "program").file("share/drover-sim/profile.yaml", "name: x\n");
    ::chmod((host_ / "usr/bin/nvidia-smi").c_str(), 0700);
  }
  DriverFiles files() const {
    return find({.root = host_.root(), .data_files = {"share/drover-sim/profile.yaml"}}).value();
  }
  Result<Volume> build() const { return build_volume(files(), folder()); }
  std::string folder() const { return state_ / "driver"; }
  std::string volume() const { return folder() + "/nvidia_390.30"; }

  FakeTree host_;
  FakeTree state_;
};

mode_t mode_of(const std::string& path) {
  struct stat info{};
  return ::lstat(path.c_str(), &info) == 0 ? info.st_mode & 07777 : 0;
}

TEST_F(VolumeTest, HoldsEverythingInItsPlace) {
  const auto mask = ::umask(077);
  const auto built = build();
  ::umask(mask);
  ASSERT_TRUE(built) << to_string(built.error());
  EXPECT_EQ(built->path, volume());
  EXPECT_FALSE(built->reused);
  EXPECT_EQ(*read_file(volume() + "/lib64/libcuda.so.390.30"),
            *read_file(host_ / "usr/lib64/libcuda.so.390.30"));
  EXPECT_EQ(fs::read_symlink(volume() + "/lib64/libcuda.so.1"), "libcuda.so.390.30");
  EXPECT_EQ(*read_file(volume() + "/share/drover-sim/profile.yaml"), "name: x\n");
  EXPECT_EQ(mode_of(volume()), 0755U);
  EXPECT_EQ(mode_of(volume() + "/lib64"), 0755U);
  EXPECT_EQ(mode_of(volume() + "/share/drover-sim"), 0755U);
  EXPECT_EQ(mode_of(volume() + "/lib/libcuda.so.390.30"), 0644U);
  EXPECT_EQ(mode_of(volume() + "/bin/nvidia-smi"), 0755U);
  EXPECT_THAT(names_in(folder()), ElementsAre(".lock", "nvidia_390.30"));
}

TEST_F(VolumeTest, WhatContainersWriteHasAPlaceToBeMountedAt) {
  ASSERT_TRUE(build());
  auto with_shared = files();
  with_shared.shared = {{"/state/live", "share/drover-sim/live"}};
  const auto built = build_volume(with_shared, folder());
  ASSERT_TRUE(built) << to_string(built.error());
  EXPECT_FALSE(built->reused) << "the one that was there has no such place";
  EXPECT_EQ(*read_file(volume() + "/share/drover-sim/live"), "");
  EXPECT_TRUE(build_volume(with_shared, folder())->reused);
}

TEST_F(VolumeTest, BesideTheDriverIsOneBehindTheGuard) {
  FakeTree own;
  own.file("libcuda.so.1", "guard");
  const Guard guard = {{own / "libcuda.so.1", "libcuda.so.1", "libdrover-driver-cuda.so.1"}};
  auto content = files();
  content.shared = {{"/state/live", "share/drover-sim/live"}};
  const auto built = build_volume(content, folder(), guard);
  ASSERT_TRUE(built) << to_string(built.error());
  EXPECT_EQ(built->guarded, volume() + "/guarded");
  const auto text = [&](const std::string& name) {
    return read_file(built->guarded + "/" + name).value_or("-");
  };
  EXPECT_EQ(text("lib64/libcuda.so.1"), "guard");
  EXPECT_EQ(text("lib64/libcuda.so.390.30"), "guard");
  EXPECT_EQ(text("guard/libdrover-driver-cuda.so.1"), *read_file(host_ / "usr/lib64/libcuda.so.390.30"));
  EXPECT_EQ(fs::hard_link_count(volume() + "/lib64/libcuda.so.390.30"), 2U) << "nothing is there twice";
  EXPECT_EQ(text("bin/nvidia-smi"), "program");
  EXPECT_THAT(names_in(built->guarded + "/lib"), IsEmpty()) << "there is no guard for 32 bits";
  for (const char* page : {"share/limits", "share/account", "share/drover-sim/live"})
    EXPECT_EQ(text(page), "");
  EXPECT_EQ(*read_file(volume() + "/lib64/libcuda.so.1"), *read_file(host_ / "usr/lib64/libcuda.so.390.30"));
  EXPECT_TRUE(build_volume(content, folder(), guard)->reused);
  own.file("libcuda.so.1", "a later guard");
  EXPECT_FALSE(build_volume(content, folder(), guard)->reused);
  EXPECT_EQ(text("lib64/libcuda.so.1"), "a later guard");
}

TEST_F(VolumeTest, CompleteVolumeIsReused) {
  ASSERT_TRUE(build());
  struct stat before{};
  ASSERT_EQ(::stat(volume().c_str(), &before), 0);
  const auto again = build();
  ASSERT_TRUE(again);
  EXPECT_TRUE(again->reused);
  struct stat after{};
  ASSERT_EQ(::stat(volume().c_str(), &after), 0);
  EXPECT_EQ(before.st_ino, after.st_ino);
}

TEST_F(VolumeTest, ChangedDriverReplacesTheNameButNotTheFolderInUse) {
  ASSERT_TRUE(build());
  const auto in_use = Directory::open(volume()).value();
  host_.file("usr/bin/nvidia-smi", "another program");
  const auto again = build();
  ASSERT_TRUE(again) << to_string(again.error());
  EXPECT_FALSE(again->reused);
  EXPECT_EQ(*read_file(volume() + "/bin/nvidia-smi"), "another program");
  EXPECT_EQ(*in_use.read("bin/nvidia-smi"), "program");
  EXPECT_THAT(names_in(folder()), ElementsAre(".lock", "nvidia_390.30", "nvidia_390.30.replaced-1"));
}

TEST_F(VolumeTest, OldVolumesGoTheLongestUnusedFirstUnlessSomebodyHasThem) {
  FakeTree& state = state_;
  for (const auto* name : {"nvidia_1", "nvidia_2", "nvidia_3.replaced-1", "nvidia_4", "nvidia_390.30"})
    state.file(std::string("driver/") + name + "/.manifest.json", R"({"files": [{"size": 100}]})");
  const auto set_time = [&](const char* name, time_t second) {
    const timespec times[] = {{second, 0}, {second, 0}};
    ::utimensat(AT_FDCWD, (folder() + "/" + name + "/.manifest.json").c_str(), times, 0);
  };
  set_time("nvidia_1", 300);
  set_time("nvidia_2", 100);
  set_time("nvidia_3.replaced-1", 200);
  set_time("nvidia_4", 50);
  const auto remove = [&](std::uint64_t bytes, const std::string& version = "390.30") {
    const auto removed = remove_old_volumes(folder(), version, bytes,
                                            [](const std::string& name) { return name == "nvidia_4"; });
    EXPECT_TRUE(removed) << to_string(removed.error());
    EXPECT_EQ(removed->bytes, 100 * removed->names.size());
    return removed->names;
  };
  EXPECT_THAT(remove(0), IsEmpty());
  EXPECT_THAT(remove(101), ElementsAre("nvidia_2", "nvidia_3.replaced-1"));
  EXPECT_THAT(names_in(folder()), ElementsAre(".lock", "nvidia_1", "nvidia_390.30", "nvidia_4"));
  EXPECT_THAT(remove(UINT64_MAX), ElementsAre("nvidia_1"));
  EXPECT_TRUE(remove_old_volumes(state_ / "absent", "1", 1, {}));
}

TEST_F(VolumeTest, AVolumeThatALaunchHoldsStays) {
  auto built = build();
  ASSERT_TRUE(built) << to_string(built.error());
  const auto remove = [&] {
    return remove_old_volumes(folder(), "535", UINT64_MAX, [](const std::string&) { return false; })->names;
  };
  EXPECT_THAT(remove(), IsEmpty());
  built->held.reset();
  EXPECT_THAT(remove(), ElementsAre("nvidia_390.30"));
}

TEST_F(VolumeTest, TruncatedOrIncompleteVolumeIsRebuilt) {
  for (const auto* damage : {"lib64/libcuda.so.390.30", ".manifest.json"}) {
    ASSERT_TRUE(build());
    fs::resize_file(volume() + "/" + damage, 10);
    const auto again = build();
    ASSERT_TRUE(again) << to_string(again.error());
    EXPECT_FALSE(again->reused) << damage;
    EXPECT_EQ(fs::file_size(volume() + "/lib64/libcuda.so.390.30"),
              fs::file_size(host_ / "usr/lib64/libcuda.so.390.30"));
  }
  fs::remove(volume() + "/bin/nvidia-smi");
  EXPECT_FALSE(build()->reused);
  EXPECT_TRUE(build()->reused);
}

TEST_F(VolumeTest, LeftoversOfKilledBuildersAreRemoved) {
  FakeTree& state = state_;
  state.file("driver/.building-nvidia_390.30/lib64/libcuda.so.390.30", "half a libr");
  ASSERT_TRUE(build());
  EXPECT_THAT(names_in(folder()), ElementsAre(".lock", "nvidia_390.30"));
}

TEST_F(VolumeTest, FailureLeavesNothingBehind) {
  const auto found = files();
  fs::remove(host_ / "usr/lib64/libcuda.so.390.30");
  const auto built = build_volume(found, folder());
  ASSERT_FALSE(built);
  EXPECT_THAT(built.error().message, HasSubstr("libcuda.so.390.30"));
  EXPECT_THAT(names_in(folder()), ElementsAre(".lock"));
}

TEST_F(VolumeTest, FullDiskIsSaidAndLeavesNothingBehind) {
  const SmallDisk disk(folder(), 0, "size=1m");
  if (!disk.mounted()) GTEST_SKIP() << "mounting a tmpfs is not allowed here";
  const auto built = build();
  ASSERT_FALSE(built);
  EXPECT_EQ(built.error().kind, ErrorKind::kExhausted);
  EXPECT_THAT(names_in(folder()), ElementsAre(".lock"));
}

TEST_F(VolumeTest, FileSystemWithoutExecIsRefused) {
  const SmallDisk disk(folder(), MS_NOEXEC, "size=16m");
  if (!disk.mounted()) GTEST_SKIP() << "mounting a tmpfs is not allowed here";
  const auto built = build();
  ASSERT_FALSE(built);
  EXPECT_EQ(built.error().kind, ErrorKind::kUnsupported);
  EXPECT_THAT(built.error().message, HasSubstr("noexec"));
  EXPECT_THAT(names_in(folder()), IsEmpty());
}

TEST_F(VolumeTest, BuildersWaitForEachOther) {
  const auto found = files();
  std::vector<std::thread> builders;
  std::atomic<int> built = 0;
  std::atomic<int> reused = 0;
  for (int i = 0; i < 8; ++i)
    builders.emplace_back([&] {
      const auto result = build_volume(found, folder());
      if (result) ++(result->reused ? reused : built);
    });
  for (auto& builder : builders) builder.join();
  EXPECT_EQ(built, 1);
  EXPECT_EQ(reused, 7);
  EXPECT_THAT(names_in(folder()), ElementsAre(".lock", "nvidia_390.30"));
}

TEST_F(VolumeTest, KilledBuilderNeverLeavesHalfAVolume) {
  const auto found = files();
  const auto whole = fs::file_size(host_ / "usr/lib64/libcuda.so.390.30");
  std::mt19937 random(1);
  int killed = 0;
  for (int round = 0; round < 60; ++round) {
    fs::remove_all(volume());
    const auto child = ::fork();
    if (child == 0) ::_exit(build_volume(found, folder()) ? 0 : 1);
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 12'000));
    ::kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    killed += WIFSIGNALED(status) ? 1 : 0;
    if (fs::exists(volume())) {
      ASSERT_EQ(fs::file_size(volume() + "/lib64/libcuda.so.390.30"), whole);
      ASSERT_TRUE(fs::exists(volume() + "/.manifest.json"));
    }
  }
  EXPECT_GT(killed, 0);
  ASSERT_TRUE(build());
  EXPECT_THAT(names_in(folder()), Each(AllOf(Not(StartsWith(".building")), Not(HasSubstr("replaced")))));
}

TEST_F(VolumeTest, VersionThatIsNoNameIsRefused) {
  for (const auto* version : {"", "../390.30", "a/b"}) {
    auto found = files();
    found.version = version;
    EXPECT_EQ(build_volume(found, folder()).error().kind, ErrorKind::kInvalid) << version;
  }
}

}  // namespace
}  // namespace drover::driver
