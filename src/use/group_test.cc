#include "use/group.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace drover::use {
namespace {

TEST(GroupTest, ReadsTheKernelsTexts) {
  EXPECT_EQ(line_of("usage_usec 12\nuser_usec 7\n", "user_usec"), 7U);
  EXPECT_FALSE(line_of("usage_usec 12\n", "user"));
  EXPECT_FALSE(line_of("", ""));
  EXPECT_EQ(parse_io_stat("8:0 rbytes=10 wbytes=20 rios=1 wios=2\n8:16 rbytes=1 wbytes=2\n"),
            (DiskBytes{11, 22}));
  EXPECT_EQ(parse_io_service_bytes("8:0 Read 10\n8:0 Write 20\n8:0 Sync 5\n8:16 Read 1\nTotal 36\n"),
            (DiskBytes{11, 20}));
  EXPECT_EQ(
      parse_net_dev("Inter-|   Receive\n face |bytes packets\n    lo:  7 1 0 0 0 0 0 0  7 1 0 0 0 0 0 0\n"
                    "  tap0: 100 1 0 0 0 0 0 0 200 2 0 0 0 0 0 0\n e1:1 1 0 0 0 0 0 0 2 2\n broken:\n"),
      (NetworkBytes{101, 202}));
}

class GroupTreeTest : public ::testing::Test {
 protected:
  GroupTreeTest() {
    std::string name = ::testing::TempDir() + "group-XXXXXX";
    root_ = ::mkdtemp(name.data());
  }
  ~GroupTreeTest() override { std::filesystem::remove_all(root_); }

  void put(const std::string& file, const std::string& text) {
    const std::filesystem::path path = root_ + "/" + file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }

  std::string root_;
};

TEST_F(GroupTreeTest, Version2) {
  put("drover/t1/cpu.stat", "usage_usec 3000000\nuser_usec 2000000\nsystem_usec 1000000\n");
  put("drover/t1/memory.current", "1000\n");
  put("drover/t1/memory.stat", "anon 500\ninactive_file 300\n");
  put("drover/t1/io.stat", "8:0 rbytes=5 wbytes=6\n");
  const std::vector<container::Hierarchy> hierarchies = {{root_, {}, true}};
  const auto reading = Group::find(hierarchies, "t1", 0).read();
  EXPECT_EQ(reading.counters.cpu_micros, 3'000'000U);
  EXPECT_EQ(reading.user_seconds, 2);
  EXPECT_EQ(reading.system_seconds, 1);
  EXPECT_EQ(reading.memory, 700U);
  EXPECT_EQ(reading.counters.disk_written, 6U);
  EXPECT_EQ(reading.counters.network_sent, kUncounted);
  EXPECT_EQ(Group::find(hierarchies, "t2", 0).read().counters, Counters{});
}

TEST_F(GroupTreeTest, Version1AndWhatOfTheOtherLiesBeside) {
  put("cpu/drover/t1/cpuacct.usage", "3000000000\n");
  put("cpu/drover/t1/cpuacct.stat", "user 200\nsystem 100\n");
  put("memory/drover/t1/memory.usage_in_bytes", "1000\n");
  put("memory/drover/t1/memory.stat", "cache 400\ntotal_inactive_file 100\n");
  put("unified/drover/t1/cpu.stat", "usage_usec 9\n");
  const std::vector<container::Hierarchy> hierarchies = {{root_ + "/cpu", {"cpu", "cpuacct"}, false},
                                                         {root_ + "/memory", {"memory"}, false},
                                                         {root_ + "/unified", {}, true}};
  const auto reading = Group::find(hierarchies, "t1", 0).read();
  EXPECT_EQ(reading.counters.cpu_micros, 3'000'000U);
  EXPECT_EQ(reading.user_seconds, 200.0 / static_cast<double>(::sysconf(_SC_CLK_TCK)));
  EXPECT_EQ(reading.memory, 900U);
  EXPECT_EQ(reading.counters.disk_read, kUncounted);
}

TEST_F(GroupTreeTest, WhatIsDamagedIsAbsent) {
  put("drover/t1/cpu.stat", "usage_usec\n\nuser_usec x\n");
  put("drover/t1/memory.current", "max\n");
  const auto reading = Group::find({{root_, {}, true}}, "t1", 0).read();
  EXPECT_EQ(reading.counters, Counters{});
  EXPECT_FALSE(reading.memory);
}

TEST(OwnNetworkTest, AProcessOfNoTaskHasNone) {
  EXPECT_FALSE(OwnNetwork::find("t1", ::getpid()));
  EXPECT_FALSE(OwnNetwork::find("t1", 0));
  EXPECT_FALSE(OwnNetwork::find("t1", 1 << 30));
}

}  // namespace
}  // namespace drover::use
