// Containers with shares of one GPU's time, over simulated CUDA, where what a kernel does is how long it
// takes.

#include <time.h>

#include "guard/testing/shared_gpu.h"

namespace drover::guard {
namespace {

/// Points that a share may be off on a machine that is busy with other things.
constexpr double kOff = kSanitized ? 6 : 4;
constexpr auto kWhile = 2000ms;

class GuardTurnsTest : public SharedGpu {};

TEST_F(GuardTurnsTest, TwoGetTheirShares) {
  add("a", 300);
  add("b", 700);
  give_turns();
  start_spinning("a", 500);
  start_spinning("b", 500);
  expect_percent("a", 30, kOff);
  EXPECT_GT(figures_of("a").turns, 10U);
  EXPECT_GT(figures_of("a").busy, 100ms);
  EXPECT_LE(figures_of("a").busy, figures_of("a").held * 2);
  stop_all();
}

TEST_F(GuardTurnsTest, KernelsOfAnyLengthGetTheirShares) {
  add("a", 250);
  add("b", 500);
  add("c", 250);
  give_turns();
  start_spinning("a", 50);
  start_spinning("b", 10'000);
  start_spinning("c", 2000);
  expect_percent("a", 25, kOff);
  expect_percent("b", 50, kOff);
  EXPECT_GE(figures_of("b").longest, 9ms);
  stop_all();
}

TEST_F(GuardTurnsTest, EveryWayToLaunchWaitsForItsTurn) {
  add("kernels", 700);
  add("ways", 300);
  give_turns();
  start_spinning("kernels", 1000);
  start_in("ways", [](Client& client, Progress& progress) {
    Spinner spinner(client);
    const auto graph = spinner.graph(1000);
    for (unsigned int i = 0; !progress.stop; ++i) {
      const auto result = i % 4 == 0   ? spinner.launch_per_thread(1000)
                          : i % 4 == 1 ? spinner.launch_cooperative(1000)
                          : i % 4 == 2 ? spinner.launch_with_config(1000)
                                       : spinner.launch_graph(graph);
      ASSERT_EQ(result, CUDA_SUCCESS);
      progress.launched_us += 1000;
      ++progress.launches;
    }
  });
  expect_percent("ways", 30, kOff);
  stop_all();
}

// What a program notices that waits for each of its kernels.
TEST_F(GuardTurnsTest, BesideANeighbourAtFullLoadHalfIsHalfAndNoKernelWaitsLong) {
  constexpr std::size_t kMost = 1 << 16;
  struct Waits {
    std::atomic<std::size_t> count;
    std::uint64_t us[kMost];
  };
  auto& waits = *shared<Waits>();
  add("own", 500);
  add("neighbour", 500);
  give_turns();
  start_in("own", [&](Client& client, Progress& progress) {
    Spinner spinner(client);
    while (!progress.stop) {
      const auto began = std::chrono::steady_clock::now();
      ASSERT_EQ(spinner.launch(1000), CUDA_SUCCESS);
      ASSERT_EQ(CALL(client.cuda, cuCtxSynchronize)(), CUDA_SUCCESS);
      const auto took = std::chrono::steady_clock::now() - began;
      const auto us = std::chrono::duration_cast<std::chrono::microseconds>(took).count();
      const std::size_t next = waits.count;
      if (next < kMost) waits.us[next] = static_cast<std::uint64_t>(us);
      waits.count = next + 1;
      progress.launched_us += 1000;
      ++progress.launches;
    }
  });
  const auto alone = measure(kWhile).at("own");
  start_spinning("neighbour", 1000);
  double part = 0;
  std::uint64_t p99 = UINT64_MAX;
  // A machine that is busy with other things may keep a process from launching for a while.
  for (int tries = 0; tries < 6 && (part < 0.47 || p99 > 110'000); ++tries) {
    const std::size_t first = waits.count;
    part = measure(kWhile).at("own") / alone;
    std::vector<std::uint64_t> sorted(waits.us + first, waits.us + std::min<std::size_t>(waits.count, kMost));
    ASSERT_GT(sorted.size(), 100U);
    std::ranges::sort(sorted);
    p99 = sorted[sorted.size() * 99 / 100];
  }
  std::printf("%.1f %% of what it has alone, and 99 of 100 kernels of 1 ms are done after %.1f ms\n",
              100 * part, static_cast<double>(p99) / 1000);
  EXPECT_GE(part, kSanitized ? 0.4 : 0.47);
  EXPECT_LE(p99, 110'000U);
  stop_all();
  ::munmap(&waits, sizeof waits);
}

// Half of the GPU is idle if its share is not lent.
TEST_F(GuardTurnsTest, WhatOneDoesNotUseIsLent) {
  add("a", 500);
  add("idle", 500);
  give_turns();
  start_spinning("a", 1000);
  const auto used = measure(kWhile);
  EXPECT_GE(used.at("a"), 0.7 * 1000 * static_cast<double>(kWhile.count()));
  EXPECT_EQ(figures_of("a").turns, 0U);
  stop_all();
}

TEST_F(GuardTurnsTest, AStrictShareIsNotLentTo) {
  add("a", 250, true);
  give_turns();
  start_spinning("a", 1000);
  const auto used = measure(kWhile);
  const auto percents = used.at("a") / (10 * static_cast<double>(kWhile.count()));
  EXPECT_LE(percents, 25 + kOff);
  EXPECT_GE(percents, 10);
  stop_all();
}

// Two threads, and two contexts: neither is lost, and both together have the share.
TEST_F(GuardTurnsTest, ThreadsAndContextsShareTheTurn) {
  add("a", 500);
  add("b", 500);
  give_turns();
  start_spinning("a", 1000);
  start_in("b", [](Client& client, Progress& progress) {
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i)
      threads.emplace_back([&, i] {
        CUcontext own = client.context;
        if (i == 0) ASSERT_EQ(CALL(client.cuda, cuCtxCreate_v2)(&own, 0, client.device), CUDA_SUCCESS);
        if (i != 0) ASSERT_EQ(CALL(client.cuda, cuCtxSetCurrent)(own), CUDA_SUCCESS);
        Spinner spinner(client);
        while (!progress.stop) {
          ASSERT_EQ(spinner.launch(700), CUDA_SUCCESS);
          progress.launched_us += 700;
          ++progress.launches;
        }
      });
    for (auto& thread : threads) thread.join();
  });
  expect_percent("b", 50, kOff);
  stop_all();
}

// Nobody says whose turn it is: then it is everybody's.
TEST_F(GuardTurnsTest, WithoutWhoDecidesNobodyWaits) {
  add("a", 100);
  const std::uint64_t never_and_long_ago[2] = {0, 1};
  ASSERT_EQ(::pwrite(boxes_[0].limits.get(), never_and_long_ago, sizeof(never_and_long_ago),
                     offsetof(guard_limits, turns)),
            static_cast<ssize_t>(sizeof(never_and_long_ago)));
  start_spinning("a", 1000);
  const auto used = measure(1000ms);
  EXPECT_GE(used.at("a"), 250'000);
  stop_all();
}

TEST_F(GuardTurnsTest, OtherErrorsAreTheDriversOwn) {
  add("a", 500, true);
  give_turns();
  start_in("a", [](Client& client, Progress&) {
    Spinner spinner(client);
    EXPECT_EQ(CALL(client.cuda, cuLaunchKernel)(nullptr, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr),
              CUDA_ERROR_INVALID_HANDLE);
    std::uint64_t us = 1;
    void* parameters[] = {&us};
    EXPECT_EQ(CALL(client.cuda, cuLaunchKernel)(spinner.function, 0, 1, 1, 1, 1, 1, 0, nullptr, parameters,
                                                nullptr),
              CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(CALL(client.cuda, cuLaunchKernelEx)(nullptr, spinner.function, parameters, nullptr),
              CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(spinner.launch(1, reinterpret_cast<CUstream>(std::uintptr_t{0x1234})),
              CUDA_ERROR_INVALID_HANDLE);
    EXPECT_EQ(spinner.launch(1), CUDA_SUCCESS);
    EXPECT_EQ(CALL(client.cuda, cuCtxSetCurrent)(nullptr), CUDA_SUCCESS);
    EXPECT_EQ(spinner.launch(1), CUDA_ERROR_INVALID_CONTEXT);
  });
  stop_all();
}

// A launch into a capture runs nothing: it neither waits nor breaks the capture.
TEST_F(GuardTurnsTest, CapturesAreLetAlone) {
  add("a", 10, true);
  give_turns();
  start_in("a", [](Client& client, Progress&) {
    Spinner spinner(client);
    CUstream stream = nullptr;
    CUgraph graph = nullptr;
    std::size_t nodes = 0;
    ASSERT_EQ(CALL(client.cuda, cuStreamCreate)(&stream, 0), CUDA_SUCCESS);
    ASSERT_EQ(CALL(client.cuda, cuStreamBeginCapture_v2)(stream, 0), CUDA_SUCCESS);
    const auto began = std::chrono::steady_clock::now();
    for (int i = 0; i < 500; ++i) ASSERT_EQ(spinner.launch(5000, stream), CUDA_SUCCESS);
    EXPECT_LT(std::chrono::steady_clock::now() - began, 1s);
    ASSERT_EQ(CALL(client.cuda, cuStreamEndCapture)(stream, &graph), CUDA_SUCCESS);
    ASSERT_EQ(CALL(client.cuda, cuGraphGetNodes)(graph, nullptr, &nodes), CUDA_SUCCESS);
    EXPECT_EQ(nodes, 500U);
  });
  stop_all();
}

}  // namespace
}  // namespace drover::guard
