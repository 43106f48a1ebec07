#include "use/sampler.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <thread>

namespace drover::use {
namespace {

constexpr std::uint32_t kEver = UINT32_MAX;

/// Tasks whose control groups are files that the test writes.
class SamplerTest : public ::testing::Test {
 protected:
  SamplerTest() {
    std::string name = ::testing::TempDir() + "sampler-XXXXXX";
    root_ = ::mkdtemp(name.data());
    std::filesystem::create_directories(root_ + "/tasks/t1");
    count(1'000'000, 5000);
  }
  ~SamplerTest() override { std::filesystem::remove_all(root_); }

  void count(std::uint64_t micros, std::uint64_t memory) {
    const std::filesystem::path group = root_ + "/groups/drover/t1";
    std::filesystem::create_directories(group);
    std::ofstream(group / "cpu.stat") << "usage_usec " << micros << "\n";
    std::ofstream(group / "memory.current") << memory << "\n";
  }
  SamplerOptions options() {
    SamplerOptions options;
    options.tasks = root_ + "/tasks";
    options.hierarchies = {{root_ + "/groups", {}, true}};
    options.log = [this](const std::string& line) { logged_.push_back(line); };
    return options;
  }
  static bool wait_for(const std::function<bool()>& condition) {
    for (int i = 0; i < 400; ++i, std::this_thread::sleep_for(std::chrono::milliseconds(25)))
      if (condition()) return true;
    return false;
  }
  static bool has_looked(const Sampler& sampler, std::size_t times) {
    return wait_for([&] {
      const auto history = sampler.history("t1", 0, 0, kEver);
      return history && history->slots.size() >= times;
    });
  }

  std::string root_;
  std::vector<std::string> logged_;
};

TEST_F(SamplerTest, ALifeIsSummedUp) {
  Sampler sampler(options());
  sampler.begin({"t1", 0, {}});
  ASSERT_TRUE(has_looked(sampler, 1));
  EXPECT_EQ(sampler.latest().at("t1").reading.memory, 5000U);
  count(2'500'000, 9000);
  ASSERT_TRUE(wait_for([&] { return sampler.latest().at("t1").reading.memory == 9000U; }));
  const auto use = sampler.end("t1");
  ASSERT_TRUE(use);
  EXPECT_EQ(use->cpu_seconds, 2.5);
  EXPECT_EQ(use->memory_bytes_max, 9000U);
  EXPECT_GT(use->seconds, 0.5);
  EXPECT_FALSE(use->gpu_percent_mean);
  EXPECT_TRUE(sampler.latest().empty());
  EXPECT_EQ(sampler.history("t1", 2, 0, kEver)->slots.size(), 1U) << "what had begun of the minute counts";
}

TEST_F(SamplerTest, AnotherLifeOfTheDaemonGoesOn) {
  {
    Sampler sampler(options());
    sampler.begin({"t1", 0, {}});
    ASSERT_TRUE(has_looked(sampler, 1));
  }
  count(4'000'000, 5000);
  Sampler sampler(options());
  sampler.begin({"t1", 0, {}});
  ASSERT_TRUE(has_looked(sampler, 2));
  const auto slots = sampler.history("t1", 0, 0, kEver)->slots;
  EXPECT_FALSE(slots.back().mean[kCpus]) << "what was done meanwhile was not done in its last second";
  EXPECT_EQ(sampler.end("t1")->cpu_seconds, 4);
}

TEST_F(SamplerTest, OneThatEndedWithoutAnybodyHasWhatWasSeenBefore) {
  {
    Sampler sampler(options());
    sampler.begin({"t1", 0, {}});
    ASSERT_TRUE(has_looked(sampler, 1));
  }
  EXPECT_EQ(Sampler(options()).end("t1")->cpu_seconds, 1);
  EXPECT_FALSE(Sampler(options()).end("t2"));
}

TEST_F(SamplerTest, AFolderThatIsGoneIsToldOnceAndHoldsUpNothing) {
  Sampler sampler(options());
  sampler.begin({"gone", 0, {}});
  sampler.begin({"t1", 0, {}});
  ASSERT_TRUE(has_looked(sampler, 2));
  sampler.end("gone");
  EXPECT_TRUE(sampler.end("t1"));
}

TEST_F(SamplerTest, WhatBeginsAfterItsEndIsForgotten) {
  Sampler sampler(options());
  EXPECT_FALSE(sampler.end("t1"));
  sampler.begin({"t1", 0, {}});
  sampler.forget("t1");
  EXPECT_TRUE(sampler.latest().empty());
}

TEST_F(SamplerTest, BeginsAndEndsFromSeveralThreads) {
  Sampler sampler(options());
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&sampler, i] {
      for (int round = 0; round < 50; ++round) {
        const auto id = "x" + std::to_string(i);
        sampler.begin({id, 0, {}});
        (void)sampler.latest();
        (void)sampler.end(id);
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
      }
    });
  for (auto& thread : threads) thread.join();
  EXPECT_TRUE(sampler.latest().empty());
}

}  // namespace
}  // namespace drover::use
