#include "use/file.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace drover::use {
namespace {

constexpr std::uint32_t kBegan = 1'700'000'040;  // a full minute

class UseFileTest : public ::testing::Test {
 protected:
  UseFileTest() {
    std::string name = ::testing::TempDir() + "use-XXXXXX";
    path_ = ::mkdtemp(name.data());
  }
  ~UseFileTest() override { std::filesystem::remove_all(path_); }

  Directory folder() { return Directory::open(path_).value(); }
  void add(File& file, std::uint32_t time, double cpus) {
    Slot slot{time, {}, {}};
    slot.mean[kCpus] = slot.most[kCpus] = cpus;
    ASSERT_TRUE(file.add(slot));
  }
  std::vector<Slot> read(std::size_t resolution) {
    return read_history(folder(), resolution, 0, UINT32_MAX).value().slots;
  }

  std::string path_;
};

TEST_F(UseFileTest, SecondsBecomeTensAndMinutes) {
  auto file = File::open(folder()).value();
  for (std::uint32_t i = 0; i <= 120; ++i) add(file, kBegan + i, i < 60 ? 1 : 3);
  const auto minutes = read(2);
  ASSERT_EQ(minutes.size(), 2U);
  EXPECT_EQ(minutes[0].time, kBegan);
  EXPECT_EQ(minutes[0].mean[kCpus], 1);
  EXPECT_EQ(minutes[1].mean[kCpus], 3);
  EXPECT_EQ(read(1).size(), 12U);
  EXPECT_EQ(read(0).size(), 121U);
}

TEST_F(UseFileTest, TheFileStaysSmall) {
  auto file = File::open(folder()).value();
  for (std::uint32_t i = 0; i < 100'000; ++i) add(file, kBegan + i, 1);
  struct stat info{};
  ASSERT_EQ(::stat((path_ + "/use").c_str(), &info), 0);
  EXPECT_LE(static_cast<std::size_t>(info.st_size), kFileBytes);
  EXPECT_LE(kFileBytes, 70'000U);
  EXPECT_EQ(read(0).size(), 300U);
  EXPECT_EQ(read(1).size(), 360U);
  EXPECT_EQ(read(2).size(), 1440U);
}

TEST_F(UseFileTest, AnotherLifeGoesOn) {
  {
    auto file = File::open(folder()).value();
    for (std::uint32_t i = 0; i < 5; ++i) add(file, kBegan + i, 1);
    Totals totals;
    totals.seconds = 5;
    ASSERT_TRUE(file.write(totals));
  }
  auto file = File::open(folder()).value();
  EXPECT_EQ(file.totals().seconds, 5);
  add(file, kBegan + 12, 1);
  ASSERT_EQ(read(1).size(), 1U);
  ASSERT_TRUE(file.finish());
  EXPECT_EQ(read(1).size(), 2U);
  EXPECT_EQ(read(2).size(), 1U);
}

TEST_F(UseFileTest, WhatIsNoSuchFileBeginsAnew) {
  std::ofstream(path_ + "/use") << std::string(5000, 'x');
  EXPECT_FALSE(read_history(folder(), 0, 0, UINT32_MAX));
  auto file = File::open(folder()).value();
  add(file, kBegan, 1);
  EXPECT_EQ(read(0).size(), 1U);
}

TEST_F(UseFileTest, WhatIsNoFileAtAllIsRefused) {
  ASSERT_EQ(::symlink("/etc/passwd", (path_ + "/use").c_str()), 0);
  EXPECT_FALSE(File::open(folder()));
  EXPECT_FALSE(read_history(folder(), 0, 0, UINT32_MAX));
  ::unlink((path_ + "/use").c_str());
  ASSERT_EQ(::mkfifo((path_ + "/use").c_str(), 0600), 0);
  EXPECT_FALSE(File::open(folder()));
}

/// Every prefix of what is written is what a writer that was killed may leave.
TEST_F(UseFileTest, CutAnywhereItReadsOrBeginsAnew) {
  {
    auto file = File::open(folder()).value();
    for (std::uint32_t i = 0; i < 30; ++i) add(file, kBegan + i, 2);
    ASSERT_TRUE(file.write({}));
  }
  const auto whole = read_file(path_ + "/use").value();
  for (std::size_t size = 0; size <= whole.size(); size += size < 1100 ? 1 : 499) {
    std::ofstream(path_ + "/use", std::ios::trunc) << whole.substr(0, size);
    auto file = File::open(folder());
    ASSERT_TRUE(file) << size;
    for (const auto& slot : read(0)) EXPECT_EQ(slot.mean[kCpus], 2) << size;
  }
}

}  // namespace
}  // namespace drover::use
