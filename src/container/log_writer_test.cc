#include "container/log_writer.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

namespace drover::container {
namespace {

namespace fs = std::filesystem;

class LogWriterTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char folder[] = "/tmp/drover-log-XXXXXX";
    ASSERT_NE(::mkdtemp(static_cast<char*>(folder)), nullptr);
    folder_ = static_cast<char*>(folder);
    fs::create_directory(folder_ / "sandbox");
    sandbox_.reset(::open((folder_ / "sandbox").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }
  void TearDown() override { fs::remove_all(folder_); }

  LogWriter writer(LogLimits limits) const {
    auto made = LogWriter::create(sandbox_.get(), "stdout", ::getuid(), ::getgid(), limits);
    EXPECT_TRUE(made);
    return std::move(*made);
  }
  std::string content(const std::string& name) const {
    std::ifstream file(folder_ / "sandbox" / name);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  fs::path folder_;
  UniqueFd sandbox_;
};

TEST_F(LogWriterTest, RotatesBetweenLinesAndDropsTheOldest) {
  auto log = writer({10, 3});
  for (const char* line : {"one one\n", "two two\n", "three 3\n", "four 44\n"}) log.append(line);
  EXPECT_EQ(content("stdout"), "four 44\n");
  EXPECT_EQ(content("stdout.1"), "three 3\n");
  EXPECT_EQ(content("stdout.2"), "two two\n");
  EXPECT_FALSE(fs::exists(folder_ / "sandbox" / "stdout.3"));
}

TEST_F(LogWriterTest, ALaterAttemptKeepsWhatWasWrittenBefore) {
  const auto begin = [&](OldLog old) {
    return LogWriter::create(sandbox_.get(), "stdout", ::getuid(), ::getgid(), {100, 3}, old).value();
  };
  begin(OldLog::kRemove).append("first\n");
  (void)begin(OldLog::kKeep);  // says nothing, and so pushes nothing out later
  begin(OldLog::kKeep).append("third\n");
  EXPECT_EQ(content("stdout"), "third\n");
  EXPECT_EQ(content("stdout.1"), "first\n");
  EXPECT_FALSE(fs::exists(folder_ / "sandbox" / "stdout.2"));
  (void)begin(OldLog::kRemove);
  EXPECT_EQ(content("stdout"), "");
}

TEST_F(LogWriterTest, OneFileStartsOver) {
  auto log = writer({4, 1});
  log.append("aaaa");
  log.append("bbbb");
  EXPECT_EQ(content("stdout"), "bbbb");
  EXPECT_FALSE(fs::exists(folder_ / "sandbox" / "stdout.1"));
}

TEST_F(LogWriterTest, IsNotLedAwayByLinks) {
  const auto victim = folder_ / "victim";
  std::ofstream(victim) << "precious";
  fs::create_symlink(victim, folder_ / "sandbox" / "stdout");
  auto log = writer({4, 3});
  log.append("aaaa");
  EXPECT_FALSE(fs::is_symlink(folder_ / "sandbox" / "stdout"));
  // And again before every rotation.
  for (int i = 0; i < 3; ++i) {
    for (const char* name : {"stdout", "stdout.1", "stdout.2"}) {
      fs::remove(folder_ / "sandbox" / name);
      fs::create_symlink(victim, folder_ / "sandbox" / name);
    }
    log.append("bbbb");
  }
  std::ifstream file(victim);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(file), {}), "precious");
}

TEST_F(LogWriterTest, AFolderInTheWayDoesNotStopIt) {
  auto log = writer({4, 2});
  log.append("aaaa");
  fs::create_directories(folder_ / "sandbox" / "stdout.1" / "full");
  log.append("bbbb");
  log.append("cccc");
  EXPECT_EQ(content("stdout"), "cccc");
}

TEST_F(LogWriterTest, AFullDiskDropsOutputAndSaysSo) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to mount a small file system";
  const auto small = folder_ / "small";
  fs::create_directory(small);
  ASSERT_EQ(::mount("tmpfs", small.c_str(), "tmpfs", 0, "size=64k"), 0);
  {
    const UniqueFd full(::open(small.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    auto log = LogWriter::create(full.get(), "stdout", 0, 0, {1 << 20, 2}).value();
    log.append(std::string(128 * 1024, 'x'));
    log.append("lost\n");
    ASSERT_EQ(::truncate((small / "stdout").c_str(), 0), 0);
    log.append("kept\n");
    std::ifstream file(small / "stdout");
    const std::string text(std::istreambuf_iterator<char>(file), {});
    EXPECT_THAT(text, ::testing::HasSubstr("bytes of output were dropped"));
    EXPECT_THAT(text, ::testing::EndsWith("kept\n"));
    EXPECT_THAT(text, ::testing::Not(::testing::HasSubstr("lost")));
  }
  ::umount2(small.c_str(), MNT_DETACH);
}

}  // namespace
}  // namespace drover::container
