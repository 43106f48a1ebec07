#include "container/remover.h"

#include <gtest/gtest.h>
#include <sys/mount.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <future>

namespace drover::container {
namespace {

namespace fs = std::filesystem;

class RemoverTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = fs::temp_directory_path() / "drover-remover-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    for (const auto* task : {"a", "b"}) {
      fs::create_directories(folder_ / "tasks" / task / "deep/deeper");
      std::ofstream(folder_ / "tasks" / task / "file") << "content";
    }
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::unique_ptr<Remover> start(std::function<void(const std::string&)> log = {}) {
    return Remover::start(folder_ / "removed", std::move(log)).value();
  }
  void await_empty() {
    while (!fs::is_empty(folder_ / "removed")) std::this_thread::yield();
  }
  Directory tasks() { return Directory::open(folder_ / "tasks").value(); }

  fs::path folder_;
};

TEST_F(RemoverTest, WhatIsRemovedIsAwayAtOnceAndGoneLater) {
  const auto remover = start();
  for (const auto* task : {"a", "b"}) {
    ASSERT_TRUE(remover->remove(tasks(), task, 1001));
    EXPECT_FALSE(fs::exists(folder_ / "tasks" / task));
  }
  await_empty();
}

TEST_F(RemoverTest, NamesMayComeAgain) {
  const auto remover = start();
  ASSERT_TRUE(remover->remove(tasks(), "a", 1001));
  fs::create_directories(folder_ / "tasks/a/new");
  ASSERT_TRUE(remover->remove(tasks(), "a", 1001));
  ASSERT_TRUE(remover->remove(tasks(), "a", 1001)) << "what is not there is no error";
  await_empty();
}

TEST_F(RemoverTest, WhatADaemonHasLeftTheNextOneRemoves) {
  fs::create_directories(folder_ / "removed/half/removed");
  const auto remover = start();
  await_empty();
}

TEST_F(RemoverTest, WhatCannotBeRemovedIsSaid) {
  const auto place = folder_ / "tasks/a/deep";
  if (::geteuid() != 0 || ::mount("tmpfs", place.c_str(), "tmpfs", 0, "size=64k") != 0)
    GTEST_SKIP() << "needs root to mount something";
  std::promise<std::string> said;
  {
    const auto remover = start([&](const std::string& line) { said.set_value(line); });
    ASSERT_TRUE(remover->remove(tasks(), "a", 1001));
    EXPECT_NE(said.get_future().get().find("something is mounted there"), std::string::npos);
  }
  for (const auto& left : fs::directory_iterator(folder_ / "removed"))
    EXPECT_EQ(::umount2((left.path() / "deep").c_str(), MNT_DETACH), 0);
}

}  // namespace
}  // namespace drover::container
