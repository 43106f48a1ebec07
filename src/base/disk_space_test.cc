#include "base/disk_space.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/fake_tree.h"

namespace drover {
namespace {

namespace fs = std::filesystem;

class DiskSpaceTest : public ::testing::Test {
 protected:
  std::uint64_t space() const { return disk_space_below(Directory::open(tree_.root()).value()).value(); }
  void write(const std::string& name, std::size_t bytes) const {
    std::ofstream(tree_.root() + "/" + name) << std::string(bytes, 'x') << std::flush;
  }

  FakeTree tree_;
};

TEST_F(DiskSpaceTest, AddsUpWhatLiesBelow) {
  const auto empty = space();
  write("large", 1 << 20);
  fs::create_directories(tree_.root() + "/a/b/c");
  write("a/b/c/deep", 1 << 20);
  EXPECT_GE(space(), empty + (2 << 20));
  EXPECT_LT(space(), empty + (3 << 20));
}

TEST_F(DiskSpaceTest, CountsAFileWithManyNamesOnce) {
  write("one", 4 << 20);
  const auto before = space();
  for (int i = 0; i < 9; ++i)
    fs::create_hard_link(tree_.root() + "/one", tree_.root() + "/" + std::to_string(i));
  EXPECT_LT(space(), before + (1 << 20));
  EXPECT_GT(space(), 3U << 20);
}

TEST_F(DiskSpaceTest, CountsNamesOfNothing) {
  const auto before = space();
  for (int i = 0; i < 1000; ++i) write(std::to_string(i), 0);
  EXPECT_GE(space(), before + 1000 * 512);
}

TEST_F(DiskSpaceTest, CountsWhatIsThereAndNotHoles) {
  write("sparse", 1);
  fs::resize_file(tree_.root() + "/sparse", 1ULL << 40);
  EXPECT_LT(space(), 1U << 20);
}

TEST_F(DiskSpaceTest, FollowsNothing) {
  const auto before = space();
  fs::create_directory_symlink("/usr", tree_.root() + "/usr");
  fs::create_symlink("/proc/self/exe", tree_.root() + "/exe");
  EXPECT_LT(space(), before + (1 << 20));
}

TEST_F(DiskSpaceTest, SaysWhatIsTooDeep) {
  fs::path deep = tree_.root();
  for (int i = 0; i < 300; ++i) deep /= "d";
  fs::create_directories(deep);
  const auto refused = disk_space_below(Directory::open(tree_.root()).value());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::kExhausted);
  EXPECT_EQ(refused.error().message, "its files lie more than 256 folders deep");
}

TEST_F(DiskSpaceTest, CountsWhatHasNoNameAnyMore) {
  const auto path = tree_.root() + "/gone";
  std::ofstream file(path);
  file << std::string(1 << 20, 'x') << std::flush;
  struct stat info{};
  ASSERT_EQ(::stat(tree_.root().c_str(), &info), 0);
  const auto nameless = [&] { return disk_space_of_nameless({::getpid()}, info.st_dev); };
  const auto before = nameless();
  fs::remove(path);
  EXPECT_GE(nameless(), before + (1 << 20));
  file.close();
  EXPECT_EQ(nameless(), before);
}

}  // namespace
}  // namespace drover
